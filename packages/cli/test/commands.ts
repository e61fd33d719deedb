import { describe, expect, test } from "vitest";
import type { Project } from "./support/project.js";

/** A place to call commands: a project, and how to reach its workflows from it. */
export type Place = {
  readonly project: Project;
  /** Arguments such as `--url …`. */
  readonly where: readonly string[];
  /** Runs what is due until nothing is. */
  readonly settle: () => Promise<void>;
};

type Open = (work: (place: Place) => Promise<void>) => Promise<void>;

/** Tests what commands do in every way to reach an engine: a config on each database, and an API. */
export function commandsWork(name: string, open: Open): void {
  describe(`pawl on ${name}`, () => {
    const works = (title: string, work: (place: Place) => Promise<void>): void =>
      test(title, () => open(work));

    works("takes an order from its start to its end", async ({ project, where, settle }) => {
      const started = await project.run([
        "start",
        "order",
        "--id",
        "order-1",
        "--params",
        '{"amount":42}',
        ...where,
      ]);
      expect(started).toMatchObject({ code: 0, stdout: "started order order-1\n" });
      const show = ["pawl show order order-1", ...where].join(" ");
      expect(started.stderr).toBe(`see how it goes: ${show}\n`);
      await settle();

      const waiting = await project.run(["show", "order", "order-1", ...where]);
      expect(waiting.code).toBe(0);
      expect(waiting.stdout).toContain("order order-1  waiting");
      expect(waiting.stdout).toMatch(/do {12}charge the card {2}completed in .*, 2 attempts/);
      expect(waiting.stdout).toContain(String.raw`attempt 1: Error: the bank is away \u{1b}[31m`);
      expect(waiting.stdout).toMatch(
        /waits for an event of type "approved", until \S+Z \(in (7|6\.\d) d\)/,
      );

      const sent = await project.run([
        "send",
        "order",
        "order-1",
        "approved",
        "--payload",
        '{"by":"Ada"}',
        ...where,
      ]);
      expect(sent).toEqual({ code: 0, stdout: "sent approved to order order-1\n", stderr: "" });
      await settle();

      const output = {
        payment: { outcome: "paid", amount: 42, at: date(0) },
        approval: { by: "Ada" },
      };
      const shown = await project.json(["show", "order", "order-1", ...where]);
      expect(shown).toMatchObject({
        workflow: "order",
        id: "order-1",
        status: "complete",
        output,
        runNumber: 1,
        runs: [{ runNumber: 1, status: "complete", output }],
        hasNextPage: false,
        entries: [
          {
            kind: "step",
            name: "charge the card",
            result: output.payment,
            attempts: [{ n: 1, error: { name: "Error" } }, { n: 2 }],
          },
          { kind: "step", name: "approval", type: "waitForEvent" },
          { kind: "event", type: "approved", payload: { by: "Ada" }, consumedByStep: 2 },
        ],
      });
      const listed = await project.run(["list", "order", ...where]);
      expect(listed.stdout).toMatch(
        /^WORKFLOW +ID +STATUS +RUN +CREATED +TOOK +RESULT\norder +order-1 +complete +1 .* \{"payment"/,
      );
    });

    works("pauses, resumes, terminates and restarts", async ({ project, where, settle }) => {
      await project.json(["start", "order", "--id", "a", "--params", '{"amount":1}', ...where]);
      await project.json(["start", "order", "--id", "b", "--params", '{"amount":1}', ...where]);
      await settle();
      const control = (verb: string, ...ids: string[]) =>
        project.json([verb, "order", ...ids, ...where]);
      const all = (status: string) => ({
        workflow: "order",
        instances: [
          { id: "a", status },
          { id: "b", status },
        ],
      });
      expect(await control("pause", "a", "b")).toEqual(all("paused"));
      const paused = await project.json(["list", "order", "--status", "paused", ...where]);
      expect(paused).toMatchObject({ instances: [{ id: "b" }, { id: "a" }], hasNextPage: false });
      expect(await control("resume", "a")).toMatchObject({ workflow: "order" });
      await project.json(["send", "order", "a", "late", ...where]);
      expect(await control("terminate", "a", "b")).toEqual(all("terminated"));
      const over = await project.run(["show", "order", "a", ...where]);
      expect(over.stdout).toContain("the run ended before this step did");
      expect(over.stdout).toMatch(/event +late {2}not taken$/m);
      expect(over.stdout).not.toContain("waits for");

      const refused = await project.run(["pause", "order", "a", ...where]);
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toContain('instance "a" has ended: terminated (INSTANCE_TERMINAL)');
      expect(refused.stderr).toContain("pawl restart");
      const some = await project.run(["restart", "order", "nobody", "a", ...where, "--json"]);
      expect(some.code).toBe(3);
      expect(JSON.parse(some.stdout)).toMatchObject({
        instances: [{ id: "nobody", error: { code: "INSTANCE_NOT_FOUND" } }, { id: "a" }],
      });
      const runs = await project.run(["show", "order", "a", ...where]);
      expect(runs.stdout).toMatch(/run 2 of 2: 2 \w+, 1 terminated/);
      const first = await project.json(["show", "order", "a", "--run", "1", ...where]);
      expect(first).toMatchObject({ runNumber: 1, entries: [{ name: "charge the card" }, {}, {}] });
    });

    works("lists instances and history in pages", async ({ project, where, settle }) => {
      for (const id of ["a", "b", "c"]) {
        await project.json(["start", "echo", "--id", id, "--params", `"${id}"`, ...where]);
      }
      await project.json(["start", "order", "--id", "z", "--params", '{"amount":1}', ...where]);
      await settle();
      type Page = { instances: { id: string }[]; cursor?: string; hasNextPage: boolean };
      const ids = ({ instances }: Page) => instances.map(({ id }) => id);
      const first = await project.json<Page>(["list", "echo", "--limit", "2", ...where]);
      expect([ids(first), first.hasNextPage]).toEqual([["c", "b"], true]);
      const next = ["list", "echo", "--limit", "2", "--cursor", first.cursor ?? "", ...where];
      const second = await project.json<Page>(next);
      expect([ids(second), second.hasNextPage, second.cursor]).toEqual([["a"], false, undefined]);
      const oldest = await project.json<Page>(["list", "echo", "--order", "oldest", ...where]);
      expect(ids(oldest)).toEqual(["a", "b", "c"]);
      expect(ids(await project.json<Page>(["list", "--limit", "2", ...where]))).toEqual(["z", "c"]);
      expect(ids(await project.json<Page>(["list", "--all", ...where])).toSorted()).toEqual([
        "a",
        "b",
        "c",
        "z",
      ]);
      const people = await project.run(["list", "echo", "--limit", "1", ...where]);
      expect(people.stderr).toContain("there are more: --all, the next page: --cursor ");
      const entries = await project.json(["show", "order", "z", "--limit", "1", ...where]);
      expect(entries).toMatchObject({ entries: [{ name: "charge the card" }], hasNextPage: true });
    });

    works("exits with 3 for what does not exist, and names it", async ({ project, where }) => {
      const unknown = await project.run(["list", "ordr", ...where]);
      expect(unknown).toMatchObject({ code: 3, stdout: "" });
      expect(unknown.stderr).toBe(
        'error there is no workflow "ordr" (WORKFLOW_NOT_FOUND)\n\n' +
          'did you mean "order"? known here: "order", "fails always", "echo"\n',
      );
      const nobody = await project.run(["show", "order", "nobody", ...where, "--json"]);
      expect(nobody).toMatchObject({ code: 3, stdout: "" });
      expect(JSON.parse(nobody.stderr)).toEqual({
        error: {
          code: "INSTANCE_NOT_FOUND",
          message: 'workflow "order" has no instance "nobody"',
          hint: "see what there is: pawl list <workflow>",
        },
      });
    });

    works("exits with 1 when refused, and says what to do", async ({ project, where }) => {
      const start = ["start", "echo", "--id", "twice", ...where];
      expect((await project.run(start)).code).toBe(0);
      const again = await project.run(start);
      expect(again.code).toBe(1);
      expect(again.stderr).toContain("INSTANCE_ID_ALREADY_EXISTS");
      expect(again.stderr).toContain("choose another --id");
    });
  });
}

function date(ms: number): object {
  return { $pawl: "Date", value: new Date(ms).toISOString() };
}
