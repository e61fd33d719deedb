import type { Clock } from "../model/seams.js";
import type { ClaimAnswer, ClaimRequest, Lane } from "../store/store.js";
import type { Verb } from "./sql.js";
import { everything, type Claim, type LowWater } from "./verbs/claim.js";
import type { NextDue } from "./verbs/next-due.js";

/** Looks at everything take a thirtieth of the time at most, but one is made every minute whatever it costs. */
const REST = 30;
const MAX_REST_MS = 60_000;

type RunVerb = <Args extends readonly unknown[], T>(
  verb: Verb<Args, T>,
  ...args: Args
) => Promise<T>;

/**
 * Claimed tickets leave dead entries at the low end of the index, and an old snapshot (a backup) keeps them
 * there: a look at everything walks over all of them, 100,000 in 200 ms on PostgreSQL. So most looks start where the
 * last one stopped, and what became visible below that (a transaction that committed late) is found by the next look at
 * everything.
 */
export class ClaimScanner {
  #lanes = "";
  #lowWater: LowWater = everything;
  /** By the database's clock, which may step back: then runs are due below the marks. */
  #lookedAt = 0;
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

    const { answer, lowWater } = await this.run(this.verbs.claim, request, from);
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

  /** May answer too early, when the next look at everything is allowed; a question then is one itself. */
  async nextDueInMs(lanes: readonly Lane[]): Promise<number | null> {
    const isMarked = JSON.stringify(lanes) === this.#lanes;
    const looksAtAll = !isMarked || (this.#owesLook && this.#isRested);
    const from = looksAtAll ? everything : this.#lowWater;
    const dueInMs = await this.run(this.verbs.nextDue, lanes, from);
    if (!isMarked || !this.#owesLook) return dueInMs;
    if (!looksAtAll) {
      return Math.max(0, Math.min(dueInMs ?? Infinity, this.#restedAtMs - this.clock.now()));
    }
    this.#owesLook = dueInMs === 0;
    return dueInMs;
  }

  get #isRested(): boolean {
    const now = this.clock.now();
    // A process's clock may step back too.
    return now >= this.#restedAtMs || now < this.#restedAtMs - MAX_REST_MS;
  }
}
