// A small log in memory whose files a test can damage: with several segments, conditions, ids,
// added tags and an index.
import { tmpdir } from "node:os";
import { crc32 } from "node:zlib";
import { onTestFinished } from "vitest";
import type { NewEvent, Problem, VerifyOptions, VerifyReport } from "../../src/common.ts";
import { plainCodec } from "../../src/events/model/codec.ts";
import type { LogMode } from "../../src/events/model/event-store.ts";
import { HeadFile } from "../../src/events/log/publish/head-file.ts";
import { encodeHeader, readHeader } from "../../src/events/log/format/segment.ts";
import { storedCrcOf } from "../../src/events/log/format/line.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import { OpenedLog, type LogOptions } from "../../src/events/open/opened-log.ts";
import { rebuildIndexes } from "../../src/events/verify/rebuild.ts";
import { verifyDirectory } from "../../src/events/verify/verify.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";

export const directory = "/log";
const bytesMax = 64 * 1024 * 1024;

export class DamagedLog {
  readonly ports: Ports;
  readonly mode: LogMode;

  private constructor(ports: Ports, mode: LogMode) {
    this.ports = ports;
    this.mode = mode;
  }

  static async make(mode: LogMode = "local"): Promise<DamagedLog> {
    return new DamagedLog(createMemoryPorts(await openNodePorts(tmpdir())), mode);
  }

  /** The log that most tests damage: 8 events in 3 or more segments. */
  static async makeSample(mode: LogMode = "local"): Promise<DamagedLog> {
    const log = await DamagedLog.make(mode);
    const store = await log.open();
    for (const name of ["ada", "bob", "cyd"])
      await store.append(
        { type: "Registered", data: { name }, tags: [`user:${name}`], id: `id-${name}` },
        { condition: { failIfEventsMatch: { types: ["Registered"], tags: [`user:${name}`] } } },
      );
    await store.append([
      { type: "Sold", data: 1, tags: ["sku:1"] },
      { type: "Sold", data: 2, tags: ["sku:2"] },
    ]);
    await store.addTags([4], ["late"]);
    for (const data of [3, 4, 5])
      await store.append(
        { type: "Sold", data, tags: [`sku:${data}`] },
        { condition: { failIfEventsMatch: [{ tags: [`sku:${data}`] }], after: 2 } },
      );
    await store.close();
    await log.ensureIndexes();
    return log;
  }

  /** Small enough to alter each byte of it. */
  static async makeTiny(mode: LogMode): Promise<DamagedLog> {
    const log = await DamagedLog.make(mode);
    const store = await log.open({ segmentBytesMax: 400 });
    await store.append([
      { type: "A", data: 1, tags: ["x"], id: "1" },
      { type: "B", data: null },
    ]);
    await store.addTags([1], ["y"]);
    await store.append({ type: "A", data: 2 }, { condition: { failIfEventsMatch: { types: ["A"] }, after: 1 } });
    await store.close();
    return log;
  }

  /** The writer of a segment may have made them already. */
  async ensureIndexes(): Promise<void> {
    if (await this.exists("index")) return;
    const opened = await OpenedLog.open(this.ports, directory, plainCodec, this.#options({}));
    await rebuildIndexes(opened, {});
    await opened.close();
  }

  async open(options: LogOptions = {}): Promise<LogEventStore<NewEvent>> {
    const store = new LogEventStore({ ports: this.ports, directory, codec: plainCodec }, this.#options(options));
    await store.open();
    onTestFinished(() => store.close());
    return store;
  }

  #options(options: LogOptions): LogOptions {
    return { mode: this.mode, segmentBytesMax: 500, ...options };
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    return await verifyDirectory(this.ports, directory, options);
  }

  /** Without the notes. */
  async problems(options: VerifyOptions = {}): Promise<readonly Problem[]> {
    return (await this.verify(options)).problems.filter(({ severity }) => severity !== "note");
  }

  async read(name: string): Promise<Buffer> {
    return Buffer.from(await this.ports.disk.readFile(`${directory}/${name}`, bytesMax));
  }

  async exists(name: string): Promise<boolean> {
    return await this.ports.disk.canOpen(`${directory}/${name}`);
  }

  /** Replaces the file if there is one. */
  async write(name: string, bytes: Uint8Array | string): Promise<void> {
    const path = `${directory}/${name}`;
    if (await this.exists(name)) await this.ports.disk.unlink(path);
    await this.ports.disk.createFile(path, Buffer.from(bytes), { sync: false });
  }

  /** One byte, at once. */
  async poke(name: string, at: number, value: number): Promise<void> {
    const file = await this.ports.disk.open(`${directory}/${name}`, "write");
    await file.write(at, Uint8Array.of(value));
    await file.close();
  }

  async remove(name: string): Promise<void> {
    await this.ports.disk.unlink(`${directory}/${name}`);
  }

  async list(name: string): Promise<string[]> {
    return (await this.ports.disk.list(`${directory}/${name}`)).sort();
  }

  /** All files below, with their paths from the log's directory. */
  async files(below: string): Promise<string[]> {
    const files: string[] = [];
    for (const name of await this.list(below)) {
      const path = `${below}/${name}`;
      if ((await this.ports.disk.stat(`${directory}/${path}`)).kind === "directory")
        files.push(...(await this.files(path)));
      else files.push(path);
    }
    return files;
  }

  /** The events, as a reader sees them; in text, to be compared. */
  async events(): Promise<string> {
    const store = new LogEventStore({ ports: this.ports, directory, codec: plainCodec }, this.#options({}));
    try {
      const events: unknown[] = [];
      for await (const event of store.read()) events.push(event);
      return JSON.stringify(events);
    } finally {
      await store.close();
    }
  }

  /**
   * Writes the lines of the last segment anew as a faulty writer would: each as `change` makes it
   * (without its place and checksum), with checksums that fit, and publishes all of it.
   */
  async forge(change: (line: Record<string, unknown>, index: number) => object | string): Promise<void> {
    const { disk } = this.ports;
    const [name = ""] = (await this.list("segments")).slice(-1);
    const number = Number(name.slice(0, 10));
    const { log, id, segment, after } = await readHeader(disk, directory, number);
    const header = encodeHeader({ log, segment, id, after });
    const [, ...lines] = (await this.read(`segments/${name}`)).toString().trimEnd().split("\n");
    let { crc } = header;
    let text = Buffer.from(header.bytes).toString();
    let { position } = after;
    for (const [index, line] of lines.entries()) {
      const changed = change(JSON.parse(line) as Record<string, unknown>, index);
      const encoded = typeof changed === "string" ? encodeText(changed, crc) : encodeObject(changed, crc);
      text += encoded.text;
      ({ crc } = encoded);
      position += (JSON.parse(line) as { events: unknown[] }).events.length;
    }
    await this.write(`segments/${name}`, text);
    await this.publishAgain({ length: Buffer.byteLength(text), crc, position });
  }

  /** Makes the head say something else. */
  async publishAgain(tip: { length?: number; crc?: number; position?: number; segment?: number }): Promise<void> {
    const file = new HeadFile(this.ports.disk, `${directory}/head`);
    const head = await file.find();
    if (head === undefined) throw new Error("no head");
    await file.write({ ...head, tip: { ...head.tip, ...tip } });
    await file.close();
  }
}

/** In the order in which a line is written. */
function encodeObject(line: object, seed: number): { text: string; crc: number } {
  const { first, time, condition, retag, events, payload } = line as Record<string, unknown>;
  return encodeText(JSON.stringify({ first, time, condition, retag, events, payload }).slice(0, -1), seed);
}

/** `text` without its checksum and its end. */
function encodeText(text: string, seed: number): { text: string; crc: number } {
  const crc = crc32(Buffer.from(text), seed);
  const whole = `${text},"crc":"${crc.toString(16).padStart(8, "0")}"}\n`;
  if (storedCrcOf(Buffer.from(whole)) !== crc) throw new Error("not a line");
  return { text: whole, crc };
}
