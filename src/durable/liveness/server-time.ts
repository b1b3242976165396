// ServerTime: the file server's clock, which is the same for all machines. It is read rarely and
// extrapolated by this machine's monotonic clock.
import { isUnwritable } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Staging } from "../publish/staging.ts";
import { withServerClock } from "./server-age.ts";

/** How long an offset between the server's clock and the monotonic one stays valid. */
const offsetMs = 30_000;

export class ServerTime {
  readonly #ports: Pick<Ports, "clock" | "disk">;
  readonly #staging: Staging;
  #offset: { readonly ms: number; readonly foundAtMs: number } | undefined;

  constructor(ports: Pick<Ports, "clock" | "disk">, staging: Staging) {
    this.#ports = ports;
    this.#staging = staging;
  }

  /** Uses this machine's clock where nothing can be written. No guarantee may rest on it. */
  async nowMs(): Promise<number> {
    const { clock, disk } = this.#ports;
    const monotonicMs = clock.monotonicMs();
    if (disk.volume.kind === "local") return clock.wallMs();
    if (this.#offset === undefined || monotonicMs - this.#offset.foundAtMs > offsetMs) {
      const stampMs = await withServerClock(this.#staging, (server) => server.findNowMs()).catch(unlessWritable);
      const foundAtMs = clock.monotonicMs();
      this.#offset = { ms: (stampMs ?? clock.wallMs()) - foundAtMs, foundAtMs };
    }
    return Math.floor(this.#offset.ms + clock.monotonicMs());
  }
}

/** A process that can only read has no clock but its own. */
function unlessWritable(error: unknown): undefined {
  if (!isUnwritable(error)) throw error;
}
