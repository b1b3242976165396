// A visitor of a console: what a page in a browser asks for while it is open.
const views: readonly (readonly [route: string, query?: Readonly<Record<string, string>>])[] = [
  ["overview"],
  ["locks"],
  ["logs"],
  ["events", { log: "sales" }],
  ["consumers", { log: "sales" }],
  ["boxes"],
  ["tickets", { box: "labels", state: "error" }],
  ["tickets", { box: "labels", state: "incoming" }],
  ["buckets"],
  ["keys", { bucket: "photos" }],
  ["files", { under: "notes" }],
  ["changes"],
  ["files-work"],
];

export class Visitor {
  /** What was answered with an error. Parts that do not exist yet are no findings. */
  readonly complaints: string[] = [];
  /** True: it stays on the overview, as a page that nobody touches. False: it walks through all views. */
  isIdle = false;
  samples = 0;
  answers = 0;
  readonly #address: URL;
  readonly #cookie: string;
  readonly #left = new AbortController();
  #next = 0;

  private constructor(address: URL, cookie: string) {
    this.#address = address;
    this.#cookie = cookie;
  }

  /** Signs in with the address that the console has printed. */
  static async open(url: string): Promise<Visitor> {
    const answer = await fetch(url, { redirect: "manual" });
    await answer.arrayBuffer();
    const [cookie = ""] = answer.headers.get("set-cookie")?.split(";") ?? [];
    return new Visitor(new URL(".", url), cookie);
  }

  /** Follows the stream as a visible tab does, until `leave`: after each sample the view is loaded again. */
  async follow(): Promise<void> {
    const { signal } = this.#left;
    try {
      const stream = await this.#get("stream");
      const decoder = new TextDecoder();
      for await (const chunk of stream.body ?? []) {
        if (!decoder.decode(chunk as Uint8Array, { stream: true }).includes("event: sample")) continue;
        this.samples++;
        await this.#look();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  leave(): void {
    this.#left.abort();
  }

  /** Asks for an action, as the button of the page does. */
  async act(action: string, body: object): Promise<number> {
    const headers = { cookie: this.#cookie, "content-type": "application/json", origin: this.#address.origin };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(new URL(`api/actions/${action}`, this.#address), init);
    await answer.arrayBuffer();
    return answer.status;
  }

  async #look(): Promise<void> {
    const [route = "overview", query = {}] = (this.isIdle ? views[0] : views[this.#next++ % views.length]) ?? [];
    const answer = await this.#get(route, query);
    const text = await answer.text();
    this.answers++;
    if (answer.status >= 500) this.complaints.push(`${route}: ${answer.status} ${text.slice(0, 300)}`);
  }

  async #get(route: string, query: Readonly<Record<string, string>> = {}): Promise<Response> {
    const url = new URL(`api/${route}?${new URLSearchParams(query).toString()}`, this.#address);
    return await fetch(url, { headers: { cookie: this.#cookie }, signal: this.#left.signal });
  }
}
