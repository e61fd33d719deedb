/** Suppresses the warning of Node's own SQLite that it is experimental, which a person at a terminal cannot change. */
export function withoutExperimentalWarnings(): void {
  process.removeAllListeners("warning");
  process.on("warning", ({ name, message }) => {
    if (name !== "ExperimentalWarning") process.stderr.write(`${name}: ${message}\n`);
  });
}
