// One gateway in each guest, with a client beside it, and what the clients were told.
import type { Bed } from "./bed.ts";
import { until } from "./command.ts";
import type { Workers } from "./faults.ts";
import type { Guest } from "./guest.ts";
import { gatewayPort, keyPair, type ClientOrders, type ClientReport, type Mark } from "./guest/s3-messages.ts";
import type { Script } from "./script.ts";

type Told<Kind extends ClientReport["kind"]> = Extract<ClientReport, { kind: Kind }>;

interface Post {
  readonly gateway: Script<object>;
  readonly client: Promise<Script<ClientReport>>;
}

const startMsMax = 90_000;
const finishMsMax = 90_000;
const auditMsMax = 300_000;

export class GatewayCrew implements Workers {
  readonly acknowledged: Told<"acknowledged">[] = [];
  readonly refused: Told<"refused">[] = [];
  readonly once: Told<"once">[] = [];
  readonly broken: string[] = [];
  readonly failures: string[] = [];
  /** Clients whose machine was killed: what they were told last is not known. */
  readonly killed = new Set<string>();
  readonly #bed: Bed;
  readonly #directory: string;
  readonly #posts = new Map<Guest, Post>();
  readonly #health = new Map<Guest, number[]>();
  #lives = 0;
  #isOver = false;

  constructor(bed: Bed, directory: string) {
    this.#bed = bed;
    this.#directory = directory;
  }

  /** Also again, after its machine was started again. */
  start(guest: Guest): void {
    const gateway = guest.run<object>(
      this.#bed.module("src/cli/bin.cjs"),
      ["s3", this.#directory, "--json", "--port", String(gatewayPort)],
      { env: { HOLDFAST_S3_ACCESS_KEY: keyPair.accessKeyId, HOLDFAST_S3_SECRET_KEY: keyPair.secretAccessKey } },
    );
    this.#mustLive(guest, gateway, "the gateway");
    const client = this.#startClient(guest, gateway);
    client.catch((error: unknown) => this.failures.push(String(error)));
    this.#posts.set(guest, { gateway, client });
  }

  async #startClient(guest: Guest, gateway: Script<object>): Promise<Script<ClientReport>> {
    // It says where it is when it serves.
    await until(`the gateway of ${guest.name}`, startMsMax, () => gateway.messages[0] ?? gateway.ending);
    const name = `${guest.name}-${++this.#lives}`;
    const client = this.#run(guest, { role: "putter", name }, (report) => this.#hear(guest, report));
    this.#mustLive(guest, client, "the client");
    void client.ended.then(({ isMachineGone }) => {
      if (isMachineGone) this.killed.add(name);
    });
    return client;
  }

  scripts(guest: Guest): readonly Script<unknown>[] {
    const gateway = this.#posts.get(guest)?.gateway;
    return gateway === undefined ? [] : [gateway];
  }

  async bury(): Promise<void> {
    // Nothing is left that a person would have to remove.
  }

  acknowledgedOf(guest: Guest): number {
    return this.acknowledged.filter(({ name }) => name.startsWith(`${guest.name}-`)).length;
  }

  /** Every answer that `/-/health` has changed to. */
  healthOf(guest: Guest): readonly number[] {
    return this.#health.get(guest) ?? [];
  }

  /** How long it took until each of these guests had so many puts more; undefined when it was too long. */
  async waitForPuts(guests: readonly Guest[], count: number, msMax: number): Promise<number | undefined> {
    const startMs = performance.now();
    const before = new Map(guests.map((guest) => [guest, this.acknowledgedOf(guest)]));
    const isDone = (): boolean => [...before].every(([guest, had]) => this.acknowledgedOf(guest) >= had + count);
    const hasCome = await until("puts", msMax, () => isDone() || this.failures.length > 0 || undefined).catch(
      () => false,
    );
    return hasCome && isDone() ? Math.round((performance.now() - startMs) / 100) / 10 : undefined;
  }

  /** All of these clients put the same key, which is not there, at once. Resolves when they were answered. */
  async race(number: number, guests: readonly Guest[], msMax: number): Promise<void> {
    const posts = guests.map((guest) => this.#posts.get(guest)).filter((post) => post !== undefined);
    const clients = await Promise.all(posts.map(({ client }) => client));
    for (const client of clients) client.send({ once: number });
    const answers = (): number => this.once.filter((each) => each.number === number).length;
    await until(`answers to put ${number}`, msMax, () => answers() === clients.length || undefined);
  }

  /** Ends the clients; the gateways serve on. */
  async finish(): Promise<void> {
    for (const [guest, { client }] of this.#posts)
      await (
        await client
      )
        .finish(finishMsMax)
        .catch(() => this.failures.push(`the client of ${guest.name} did not finish: it hangs`));
  }

  /** What the gateway of this guest shows: all versions, each read, and the keys of a plain listing. */
  async audit(guest: Guest): Promise<{ readonly found: readonly Told<"found">[]; readonly keys: readonly string[] }> {
    const found: Told<"found">[] = [];
    let keys: readonly string[] | undefined;
    const auditor = this.#run(guest, { role: "auditor", name: "auditor" }, (report) => {
      if (report.kind === "found") found.push(report);
      if (report.kind === "broken") this.broken.push(`${report.what} (by ${guest.name})`);
      if (report.kind === "audited") keys = report.keys;
    });
    const { stderr } = await until(`the audit by ${guest.name}`, auditMsMax, () => auditor.ending);
    if (keys === undefined) this.failures.push(`the audit by ${guest.name} failed: ${stderr}`);
    return { found, keys: keys ?? [] };
  }

  /** The end of what each gateway has written to stderr. */
  get warnings(): readonly string[] {
    return [...this.#posts].flatMap(([guest, { gateway }]) =>
      gateway.stderr
        .split("\n")
        .filter((line) => line !== "")
        .slice(-2)
        .map((line) => `${guest.name}: ${line}`),
    );
  }

  async kill(): Promise<void> {
    this.#isOver = true;
    for (const { gateway, client } of this.#posts.values()) {
      const scripts = [gateway, await client.catch(() => undefined)];
      for (const script of scripts) if (script !== undefined && script.ending === undefined) await script.kill();
    }
  }

  #hear(guest: Guest, report: ClientReport): void {
    if (report.kind === "acknowledged") this.acknowledged.push(report);
    if (report.kind === "refused") this.refused.push(report);
    if (report.kind === "once") this.once.push(report);
    if (report.kind === "broken") this.broken.push(`${report.what} (by ${guest.name})`);
    if (report.kind === "health") this.#health.set(guest, [...this.healthOf(guest), report.status]);
  }

  #mustLive(guest: Guest, script: Script<unknown>, what: string): void {
    void script.ended.then(({ code, signal, isMachineGone, stderr }) => {
      if (!isMachineGone && !this.#isOver && code !== 0)
        this.failures.push(`${what} of ${guest.name} ended with ${code ?? signal}: ${stderr}`);
    });
  }

  #run(guest: Guest, orders: ClientOrders, onMessage: (report: ClientReport) => void): Script<ClientReport> {
    const module = this.#bed.module("test/shares/guest/s3-client.ts");
    return guest.run<ClientReport>(module, [JSON.stringify(orders)], { onMessage });
  }
}

export function textOfMark({ name, count }: Mark): string {
  return `${name} ${count}`;
}
