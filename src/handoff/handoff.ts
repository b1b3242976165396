// The open hand-off: implements the public interface and delegates each call to its room.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../common.ts";
import { directoryLeases, type Leases } from "../part/leases.ts";
import { traceMethods } from "../telemetry/trace.ts";
import type { Box } from "./box/box.ts";
import type { OpenedBox } from "./box/open-box.ts";
import { arrivalHints } from "./consume/arrival-hints.ts";
import { BoxSource } from "./consume/box-source.ts";
import { Claimer } from "./consume/claimer.ts";
import { Arrivals } from "./deliver/arrivals.ts";
import { tracedHandoffMethods } from "./deliver/traced-methods.ts";
import { recoverClaims } from "./foreign/adopter.ts";
import { claimsInBox, type OpenFolder } from "./foreign/folder.ts";
import { ForeignFolders } from "./foreign/folders.ts";
import type { AdoptRule, ExportRule } from "./model/foreign-rule.ts";
import type {
  AdoptOptions,
  Collected,
  ContentOptions,
  DiscardOptions,
  ExportOptions,
  HandoffOptions,
  HandoffStats,
  ListOptions,
  ReplayOptions,
  TicketInfo,
  TicketState,
} from "./model/handoff.ts";
import type { Published, Publication } from "./model/publication.ts";
import { collect } from "./operate/collect.ts";
import { contentOf } from "./operate/content.ts";
import { discard } from "./operate/discard.ts";
import { describeFound } from "./operate/describe.ts";
import { findTicket, findTicketByKey } from "./operate/find.ts";
import { listTickets } from "./operate/list.ts";
import { Pause } from "./operate/pause.ts";
import { waitForReceipt } from "./operate/receipt.ts";
import { replay } from "./operate/replay.ts";
import { statsOf } from "./operate/stats.ts";
import { verify } from "./operate/verify/verify.ts";
import { BoxPublisher } from "./publish/box-publisher.ts";
import { TargetBoxes } from "./publish/target-boxes.ts";
import { leaveBox } from "./recover/return-tickets.ts";
import { Recovery } from "./recover/recovery.ts";
import { CheckedHandoff } from "./checked-handoff.ts";

export class BoxHandoff extends CheckedHandoff {
  static {
    traceMethods(this, tracedHandoffMethods);
  }

  readonly box: Box;
  readonly #ownsGround: boolean;
  readonly #retention: NonNullable<HandoffOptions["retention"]>;
  readonly #leases: Leases;
  readonly #source: BoxSource;
  readonly #publisher: BoxPublisher;
  readonly #targets: TargetBoxes;
  readonly #folders: ForeignFolders;

  /**
   * `openFolder` finds the disk of a foreign folder. Default: the folder is an absolute path on the
   * disk of the box.
   */
  constructor(
    { box, ownsGround }: OpenedBox,
    { leaseMs = 30_000, limits = {}, retention = {} }: HandoffOptions = {},
    openFolder: OpenFolder = async (path) => ({ path, disk: box.disk }),
  ) {
    const { ports } = box.ground;
    const leases = directoryLeases(box.layout.directory, async () => box.ground);
    const arrivals = new Arrivals(ports, arrivalHints(box));
    const publisher = new BoxPublisher(box, arrivals, limits);
    const targets = new TargetBoxes(box, leaseMs);
    const source = new BoxSource(box, {
      arrivals,
      claimer: new Claimer(box, leases, limits.inFlight),
      pause: new Pause(box),
      recovery: new Recovery(box, leaseMs, () => recoverClaims(publisher, claimsInBox(box))),
      targets,
    });
    super(source, ports);
    this.box = box;
    this.#ownsGround = ownsGround;
    this.#retention = { ...retention };
    this.#leases = leases;
    this.#source = source;
    this.#publisher = publisher;
    this.#targets = targets;
    this.#folders = new ForeignFolders(publisher, this.feed, this.loops, openFolder);
  }

  protected override async publishChecked(publication: Publication): Promise<Published> {
    return await this.#publisher.publish(publication);
  }

  async adopt(directory: string, rule: AdoptRule, options: AdoptOptions = {}): Promise<number> {
    return await this.#folders.adopt(directory, rule, options);
  }

  keepAdopting(
    directory: string,
    rule: AdoptRule,
    options: AdoptOptions & { everyMs?: number | undefined } = {},
  ): Running {
    return this.#folders.keepAdopting(directory, rule, options);
  }

  async export(directory: string, rule: ExportRule = {}, options: ExportOptions = {}): Promise<number> {
    return await this.#folders.export(directory, rule, options);
  }

  keepExporting(directory: string, rule: ExportRule = {}, options: ExportOptions = {}): Running {
    return this.#folders.keepExporting(directory, rule, options);
  }

  async find(id: string): Promise<TicketInfo | undefined> {
    this.life.mustBeOpen();
    return await describeFound(this.box, await findTicket(this.box, id));
  }

  async findByKey(key: string): Promise<TicketInfo | undefined> {
    this.life.mustBeOpen();
    return await describeFound(this.box, await findTicketByKey(this.box, key));
  }

  protected override listChecked(state: TicketState, options: ListOptions): AsyncGenerator<TicketInfo> {
    return listTickets(this.box, state, options);
  }

  protected override async waitUntilSettled(id: string, signal: AbortSignal | undefined): Promise<TicketInfo> {
    return await waitForReceipt(this.box, id, { signal, closed: this.life.closed });
  }

  protected override readContent(id: string, name: string, options: ContentOptions): AsyncGenerator<Uint8Array> {
    return contentOf(this.box, id, name, options);
  }

  async stats(): Promise<HandoffStats> {
    this.life.mustBeOpen();
    return await statsOf(this.box, this.#source.pause);
  }

  async replay(options: ReplayOptions): Promise<number> {
    this.life.mustBeOpen();
    const count = await replay(this.box, options);
    this.wakeAll();
    return count;
  }

  async discard(options: DiscardOptions): Promise<number> {
    this.life.mustBeOpen();
    return await discard(this.box, options);
  }

  async collect(options: Cancel = {}): Promise<Collected> {
    this.life.mustBeOpen();
    return await collect(this.box, this.#retention, options);
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    this.life.mustBeOpen();
    return await verify(this.box, options);
  }

  protected override wakeAll(): void {
    this.#source.arrivals.wakeAll();
  }

  protected override async leave(): Promise<void> {
    await this.#leases.close();
    await leaveBox(this.box);
    await this.#targets.close();
    if (this.#ownsGround) await this.box.ground.close();
  }
}
