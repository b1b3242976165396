// The rounds in which one side changes something and the other watches. They measure how soon the change is seen, and
// by which call. Each duration is measured by one clock.
import { hasErrno } from "../../ports/disk-error.ts";
import { bytesOf, findText } from "../check.ts";
import type { Role } from "./pairing.ts";
import type { BothSides, PeerSession } from "./session.ts";

/** The delays with which one side saw the other's changes. `visibilityMsMax` means "longer than the wait". */
export interface VisibilityDelays {
  /**
   * Until a listing shows a new name: half the time between making a name and listing the other side's answer to it.
   */
  readonly listingMs: number;
  /** How long opens kept reporting a name as absent after it was made. */
  readonly absenceMs: number;
  /** How long opens of a removed name kept succeeding. */
  readonly presenceMs: number;
  /** How long reads of a replaced file kept returning its old content. */
  readonly replacedMs: number;
}

export const visibilityMsMax = 5_000;
const lookEveryMs = 10;
const roles: readonly Role[] = ["first", "second"];

export async function measureVisibility(session: PeerSession): Promise<BothSides<VisibilityDelays>> {
  const { disk } = session.ports;
  const listingMs = await measureListing(session);
  const absenceMs = await measureChange(session, "absent", {
    look: async (path) => disk.canOpen(path),
    prepare: async () => undefined,
    change: async (path) => disk.createFile(path, bytesOf("there"), { sync: false }),
  });
  const presenceMs = await measureChange(session, "present", {
    look: async (path) => !(await disk.canOpen(path)),
    prepare: async (path) => disk.createFile(path, bytesOf("there"), { sync: false }),
    change: async (path) => disk.unlink(path),
  });
  const replacedMs = await measureChange(session, "replaced", {
    look: async (path) => (await findText(session, path).catch(ignoreStale)) === "new",
    prepare: async (path) => disk.createFile(path, bytesOf("old"), { sync: false }),
    change: async (path) => {
      await disk.createFile(`${path}.temp`, bytesOf("new"), { sync: false });
      await disk.rename(`${path}.temp`, path);
    },
  });
  return await session.exchange("sight", { listingMs, absenceMs, presenceMs, replacedMs });
}

/** A client that still uses the replaced file reports ESTALE: it has not seen the new one yet. */
function ignoreStale(error: unknown): undefined {
  if (!hasErrno(error, "ESTALE")) throw error;
}

/** One side calls and the other answers; then the reverse. */
async function measureListing(session: PeerSession): Promise<number> {
  const { clock, disk } = session.ports;
  let mineMs = 0;
  for (const caller of roles) {
    const [call, answer] = [`${caller}-call`, `${caller}-answer`];
    const isListed = async (name: string): Promise<boolean> =>
      await session.waitFor(async () => (await disk.list(`${session.directory}/sight`)).includes(name), {
        limitMs: 2 * visibilityMsMax,
        everyMs: lookEveryMs,
      });
    await session.exchange(`${caller}-call-ready`, {});
    const startedMs = clock.monotonicMs();
    if (session.role === caller) {
      await disk.createFile(session.path("sight", call), new Uint8Array(), { sync: false });
      await isListed(answer);
      mineMs = Math.min((clock.monotonicMs() - startedMs) / 2, visibilityMsMax);
    } else if (await isListed(call)) {
      await disk.createFile(session.path("sight", answer), new Uint8Array(), { sync: false });
    }
    await session.exchange(`${caller}-call-done`, {});
  }
  return Math.round(mineMs);
}

interface Change {
  /** Run by the changing side before the watching side first checks. */
  readonly prepare: (path: string) => Promise<void>;
  /**
   * Run by the watching side: true if the change is visible. Also run before the change, so that
   * the client caches the old state.
   */
  readonly look: (path: string) => Promise<boolean>;
  readonly change: (path: string) => Promise<void>;
}

/**
 * A note in another directory announces the change: listing this directory would refresh what the
 * watching client has cached.
 */
async function measureChange(session: PeerSession, name: string, { prepare, look, change }: Change): Promise<number> {
  const { clock } = session.ports;
  let mineMs = 0;
  for (const looker of roles) {
    const isLooker = session.role === looker;
    const path = session.path("sight", `${looker}-${name}`);
    if (!isLooker) await prepare(path);
    await session.exchange(`${looker}-${name}-prepared`, {});
    if (isLooker) await look(path);
    await session.exchange(`${looker}-${name}-remembered`, {});
    if (!isLooker) await change(path);
    await session.exchange(`${looker}-${name}-changed`, {});
    if (isLooker) {
      const startedMs = clock.monotonicMs();
      const isFresh = await look(path);
      if (!isFresh) {
        const isSeen = await session.waitFor(() => look(path), { limitMs: visibilityMsMax, everyMs: lookEveryMs });
        // At least 1, because 0 means that the first check already saw the change.
        mineMs = isSeen ? Math.max(1, Math.round(clock.monotonicMs() - startedMs)) : visibilityMsMax;
      }
    }
    await session.exchange(`${looker}-${name}-seen`, {});
  }
  return mineMs;
}
