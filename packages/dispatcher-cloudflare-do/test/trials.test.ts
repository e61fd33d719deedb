import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundled, volatileWorkerd, worker } from "./support/workerd.js";
import type { Fault } from "./workers/trial.js";

type Told = { readonly struck: string | null; readonly wrong: string | null };
type Report = { readonly undisturbed: Told; readonly struck: readonly Told[] };

const faults: readonly Fault[] = ["evicted", "evicted after", "storage fails", "alarmed twice"];
/** Programs of the simulator: steps, retries, waits and their races, parallel and nested bodies, children. */
const programs = [
  "one step",
  "three steps",
  "a retry",
  "at most once",
  "a sleep",
  "an event",
  "a race of waits",
  "bodies beside a wait",
  "a step in a step",
  "a race of depths",
  "a child",
  "a child outside of steps",
  "an error",
];

/**
 * Each trial is an object of its own, with one program. It meets the fault at one point of its life, and has
 * to come to its end by its alarm alone: every step is stored once, no body begins more often than allowed,
 * and nothing is lost.
 */
describe("an object that meets a fault", () => {
  let end = async (): Promise<void> => {};
  // All trials run at once, because most of the time they wait for alarms.
  const reports = new Map<string, Promise<Report>>();
  const playing = faults.flatMap((fault) => programs.map((program) => ({ fault, program })));

  beforeAll(async () => {
    const opened = await volatileWorkerd(await bundled(worker("trials")), "Host");
    const { server } = opened;
    end = opened.end;
    for (const { fault, program } of playing) {
      const body = JSON.stringify({ program, fault });
      const answer = server.dispatchFetch("http://trials/", { method: "POST", body });
      const report = answer.then((each) => each.json() as Promise<Report>);
      report.catch(() => {}); // the test that awaits it says why
      reports.set(`${fault} ${program}`, report);
    }
  });
  afterAll(() => end());

  for (const { fault, program } of playing) {
    test(`${fault}, at every point of ${program}`, { timeout: 180_000 }, async () => {
      const { undisturbed, struck } = (await reports.get(`${fault} ${program}`)) as Report;
      expect(undisturbed.wrong).toBe(null);
      expect(struck.filter(({ wrong }) => wrong !== null)).toEqual([]);
      // Timers can make a life shorter than the one that was measured.
      const met = struck.filter((each) => each.struck !== null);
      expect(met.length).toBeGreaterThan(struck.length / 2);
    });
  }
});
