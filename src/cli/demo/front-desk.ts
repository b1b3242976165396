// The front desk of the demo: a store in its folder that records every receipt, with a lock that
// somebody waits for and a ticket that failed, for the console to show.
import { startConsole, type RunningConsole } from "../../console/index.ts";
import type { NewEvent } from "../../events/index.ts";
import { openStore, type Store } from "../../index.ts";
import type { Receipt } from "./stations/station.ts";

const recordEveryMs = 500;
/** Number of labels that are ordered. The printer has no paper for one of them until its ticket is replayed. */
const labelsOrdered = 6;
const unlucky = "label-4";

export class FrontDesk implements AsyncDisposable {
  readonly #store: Store;
  /** Competes for a lock that the store holds, as another process would. */
  readonly #rival: Store;
  readonly #console: RunningConsole;
  readonly #ended = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #receipts: NewEvent[] = [];
  #recording: Promise<unknown> = Promise.resolve();

  private constructor(store: Store, rival: Store, shown: RunningConsole) {
    this.#store = store;
    this.#rival = rival;
    this.#console = shown;
    this.#timer = setInterval(() => void this.#record(), recordEveryMs);
  }

  /** Opens the store below the folder of the demo, and its console on any free port. */
  static async open(directory: string): Promise<FrontDesk> {
    const location = `${directory}/front-desk`;
    const store = await openStore(location, { name: "front desk" });
    const rival = await openStore(location, { name: "delivery van" });
    const shown = await startConsole(store, { port: 0, allowActions: true });
    const desk = new FrontDesk(store, rival, shown);
    try {
      await desk.#begin();
      return desk;
    } catch (error) {
      await desk[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The address of the console. */
  get url(): string {
    return this.#console.url;
  }

  /** Records a receipt as an event, together with those of the same moment. */
  add({ station, workstation, what }: Receipt): void {
    const tags = [`station:${station}`, `workstation:${workstation}`];
    this.#receipts.push({ type: "PieceDone", data: { what }, tags });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#record();
    this.#ended.abort();
    await this.#console.close();
    await this.#rival.close();
    await this.#store.close();
  }

  async #begin(): Promise<void> {
    const files = await this.#store.files();
    await files.write("shelves/north.md", "The north shelves are counted today.");
    // The index reads the file before the lock is taken: it would be one more that waits for it.
    await files.settled();
    const { signal } = this.#ended;
    await (
      await this.#store.locks()
    )
      .acquire("shelves", { mode: "tree", tag: "stock-taking", signal })
      .then(this.#keep);
    const wanted = (await this.#rival.locks()).acquire("shelves/north.md", {
      timeoutMs: Infinity,
      tag: "refill",
      signal,
    });
    // The wait ends with the demo, or with the lock, if somebody releases it by force.
    wanted.then(this.#keep, () => undefined);
    const objects = await this.#store.objects();
    const bucket = (await objects.findBucket("price-list")) ?? (await objects.createBucket("price-list"));
    await bucket.setVersioning("enabled");
    for (const price of ["9.50", "9.90"]) await bucket.put("lamp.txt", price, { contentType: "text/plain" });
    await this.#printLabels();
  }

  /** A hold is released when the program forgets it. */
  readonly #keep = (hold: object): void => void this.#held.push(hold);
  readonly #held: object[] = [];

  async #printLabels(): Promise<void> {
    const box = await this.#store.handoff("labels");
    box.consume(
      async (delivery) => {
        const { key, history } = (await box.find(delivery.id)) ?? { key: "", history: [] };
        if (key === unlucky && history.length === 0) throw new Error("The label printer is out of paper: refill it, then replay this ticket."); // prettier-ignore
        return { printed: key };
      },
      { onError: () => "fail" },
    );
    for (let number = 1; number <= labelsOrdered; number++)
      await box.publish({ "label.txt": `Label ${number}: lamp, 9.90` }, { key: `label-${number}` });
  }

  /** One append after the other; what arrives meanwhile goes with the next. */
  async #record(): Promise<void> {
    const receipts = this.#receipts;
    this.#receipts = [];
    this.#recording = this.#recording.then(async () => {
      if (receipts.length > 0) await (await this.#store.events("receipts")).append(receipts);
    });
    await this.#recording;
  }
}
