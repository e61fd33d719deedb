import type { Clock } from "../model/seams.js";
import type { ClaimAnswer, ClaimRequest, Lane } from "../store/store.js";
import type { RunVerb } from "./driver.js";
import { everything, type Claim, type LowWater } from "./verbs/claim.js";
import type { NextDue } from "./verbs/next-due.js";

/** Looks at everything take a thirtieth of the time at most, but one happens every minute whatever it costs. */
const REST = 30;
const MAX_REST_MS = 60_000;

/**
 * Decides where in the index a claim starts to look. Claimed tickets leave dead entries at the low end of the index,
 * and an old snapshot (a backup) keeps them there: a look at everything walks over all of them, 100,000 in 200 ms on
 * PostgreSQL. So most looks start where the last one stopped. A ticket that became visible below that mark, because its
 * transaction committed late, is found by the next look at everything.
 */
export class ClaimScanner {
  #lanes = "";
  #lowWater: LowWater = everything;
  /** The time of the last look, by the database's clock. If that clock steps back, runs are due below the marks. */
  #lookedAt = 0;
  /** When the next look at everything is allowed, by the clock of this process. */
  #restedAtMs = 0;
  /** The last claim came back short and had not looked at everything. */
  #owesLook = false;

  constructor(
    private readonly run: RunVerb,
    private readonly verbs: { readonly claim: Claim; readonly nextDue: NextDue },
    private readonly clock: Clock,
    private readonly trustsMarks: boolean,
  ) {}

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const lanes = JSON.stringify(request.lanes);
    const since = this.clock.now();
    const from = this.#isRested || lanes !== this.#lanes ? everything : this.#lowWater;

    const { answer, lowWater } = await this.run("engine", this.verbs.claim, request, from);
    if (answer.kind === "dead" || !this.trustsMarks) return answer;
    if (from === everything) {
      const now = this.clock.now();
      this.#restedAtMs = now + Math.min(REST * Math.max(0, now - since), MAX_REST_MS);
    }
    if (answer.now < this.#lookedAt) this.#restedAtMs = 0;
    this.#lookedAt = answer.now;
    this.#lanes = lanes;
    this.#lowWater = lowWater;
    this.#owesLook = from !== everything && answer.claimed.length < request.limit;
    return answer;
  }

  /**
   * May answer too early: while a look at everything is owed, the answer is at most the time until one is allowed. Once
   * it is allowed, this question is that look.
   */
  async nextDueInMs(lanes: readonly Lane[]): Promise<number | null> {
    const isMarked = JSON.stringify(lanes) === this.#lanes;
    const looksAtAll = !isMarked || (this.#owesLook && this.#isRested);
    const from = looksAtAll ? everything : this.#lowWater;
    const dueInMs = await this.run("engine", this.verbs.nextDue, lanes, from);
    if (!isMarked || !this.#owesLook) return dueInMs;
    if (!looksAtAll) {
      return Math.max(0, Math.min(dueInMs ?? Infinity, this.#restedAtMs - this.clock.now()));
    }
    this.#owesLook = dueInMs === 0;
    return dueInMs;
  }

  get #isRested(): boolean {
    const now = this.clock.now();
    // The clock of a process may step back too.
    return now >= this.#restedAtMs || now < this.#restedAtMs - MAX_REST_MS;
  }
}
