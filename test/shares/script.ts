// A script that runs in a guest, in the hands of a scenario: what it says, and how it is stopped,
// continued, told something and killed.
import { finishOrder } from "../../harness/processes/child-side.ts";
import type { AgentLink } from "./agent-link.ts";

export interface ScriptEnding {
  readonly code: number | null;
  readonly signal: string | null;
  /** Its machine went down with it. */
  readonly isMachineGone: boolean;
  /** The end of what it wrote there. */
  readonly stderr: string;
}

export interface ScriptOptions<Message> {
  readonly env?: Readonly<Record<string, string>>;
  /** Each line on stdout is one message, as JSON. */
  readonly onMessage?: (message: Message) => void;
}

const stderrLengthMax = 4000;

export class Script<Message> {
  readonly messages: Message[] = [];
  readonly ended: Promise<ScriptEnding>;
  readonly #link: AgentLink;
  readonly #id: number;
  #ending: ScriptEnding | undefined;
  #stderr = "";

  constructor(link: AgentLink, module: string, args: readonly string[], options: ScriptOptions<Message> = {}) {
    this.#link = link;
    const { promise, resolve } = withResolvers<ScriptEnding>();
    this.ended = promise;
    const end = (ending: Omit<ScriptEnding, "stderr">): void => {
      this.#ending ??= { ...ending, stderr: this.#stderr };
      link.forget(this.#id);
      resolve(this.#ending);
    };
    this.#id = link.order({ order: "start", module, args, env: options.env ?? {} }, (report) => {
      if (report === undefined) end({ code: null, signal: null, isMachineGone: true });
      else if (report.kind === "end") end({ code: report.code, signal: report.signal, isMachineGone: false });
      else if (report.kind === "stderr") this.#stderr = (this.#stderr + report.text).slice(-stderrLengthMax);
      else if (report.kind === "line") {
        const message = JSON.parse(report.line) as Message;
        this.messages.push(message);
        options.onMessage?.(message);
      }
    });
  }

  /** Undefined while it runs. */
  get ending(): ScriptEnding | undefined {
    return this.#ending;
  }
  get stderr(): string {
    return this.#stderr;
  }

  /** By the channel between Node processes. */
  send(message: unknown): void {
    this.#link.tell(this.#id, { order: "send", message });
  }
  /** SIGSTOP: the process stands still, its kernel and its mount live on. */
  stop(): void {
    this.#signal("SIGSTOP");
  }
  continue(): void {
    this.#signal("SIGCONT");
  }
  async kill(): Promise<ScriptEnding> {
    this.#signal("SIGKILL");
    return await this.ended;
  }
  /**
   * Tells it to end by itself, as harness/processes does; rejects when it takes longer than
   * `msMax`.
   */
  async finish(msMax: number): Promise<ScriptEnding> {
    this.send(finishOrder);
    return await within(msMax, this.ended, "a script that was told to finish");
  }

  #signal(signal: NodeJS.Signals): void {
    this.#link.tell(this.#id, { order: "signal", signal });
  }
}

export async function within<T>(msMax: number, promise: Promise<T>, what: string): Promise<T> {
  const { promise: late, reject } = withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${what} took more than ${msMax} ms`)), msMax);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: Error) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
