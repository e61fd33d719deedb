/** Node's own SQLite warns at every start that it is new: nothing that a person at a terminal can change. */
export function withoutExperimentalWarnings(): void {
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message }) => {
    if (name !== "ExperimentalWarning") process.stderr.write(`${name}: ${message}\n`);
  });
}
