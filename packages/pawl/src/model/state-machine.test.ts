import { expect, it } from "vitest";
import { terminalStates, type InstanceState } from "./status.js";
import {
  engineCommands,
  transition,
  transitions,
  userCommands,
  type Command,
} from "./transitions.js";

const states = Object.keys(transitions) as InstanceState[];

// When this fails: npm run check shows the difference, and this command rewrites the page:
const rewrite = "npx vitest run --project unit state-machine -u";

it(`docs/state-machine.md shows the transition table (rewrite it with: ${rewrite})`, async () => {
  await expect(page()).toMatchFileSnapshot("../../../../docs/state-machine.md");
});

function page(): string {
  return `# The states of an instance

<!-- Rendered from packages/pawl/src/model/transitions.ts. Do not edit; run: ${rewrite} -->

\`\`\`mermaid
${diagram()}
\`\`\`

The diagram leaves out \`restart\`, which leads from every state to \`queued\`, as a new run.

## Commands of people

${table(userCommands)}

- *same*: the command is accepted, and the status stays. An event is stored then, also for a paused instance.
- *refused*: the caller gets \`INSTANCE_TERMINAL\`. An event that the run has already is not refused when it is sent again.
- \`pause\` of a running instance takes effect at its next step boundary. An instance that finishes first stays finished.
- \`resume\` while waiting for a pause cancels the pause.
- Pausing does not stop timers: a timer that ran out meanwhile acts right after \`resume\`.
- \`restart\` keeps the earlier run readable and fences its turn: everything that the turn still wants to write is refused.

## Commands of a runner

${table(engineCommands)}

- \`claim\` takes a due instance, or one of a runner that was declared dead. A pausing one goes straight to \`paused\`: no code runs.
- A parked run that is still in its runner's memory may be claimed before it is due (\`reopen\`).
- \`park\` ends a turn that waits; \`release\` gives an unfinished turn back.
- An empty cell cannot happen: claims skip paused and finished instances, and the claim number fences the rest.
`;
}

function table(commands: readonly Command[]): string {
  const header = ["state", ...commands.map((command) => `\`${command}\``)];
  const rows = states.map((state) => [
    `**${state}**`,
    ...commands.map((command) => cell(state, command)),
  ]);
  return [header, header.map(() => "---"), ...rows]
    .map((row) => `| ${row.join(" | ")} |`)
    .join("\n");
}

function cell(state: InstanceState, command: Command): string {
  const result = transition(state, command);
  if ("refused" in result) return result.refused === "IMPOSSIBLE" ? "" : "*refused*";
  if (command === "restart") return `${result.state}, new run`;
  return result.state === state ? "*same*" : result.state;
}

function diagram(): string {
  const commands = [...userCommands, ...engineCommands].filter((command) => command !== "restart");
  const arrows = new Map<string, Command[]>();
  for (const state of states) {
    for (const command of commands) {
      const result = transition(state, command);
      if ("refused" in result || result.state === state) continue;
      const arrow = `${state} --> ${result.state}`;
      arrows.set(arrow, [...(arrows.get(arrow) ?? []), command]);
    }
  }
  return [
    "stateDiagram-v2",
    "  [*] --> queued: create",
    ...[...arrows].map(([arrow, labels]) => `  ${arrow}: ${labels.join(", ")}`),
    ...terminalStates.map((state) => `  ${state} --> [*]`),
  ].join("\n");
}
