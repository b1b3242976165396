// The rounds in which one changes something and the other looks: how soon it is seen, and by which
// kind of look. Times are taken on one clock each.
import { hasErrno } from "../../ports/disk-error.ts";
import { bytesOf, findText } from "../check.ts";
import type { Role } from "./pairing.ts";
import type { Pair, Session } from "./session.ts";

/** Each as one side saw what the other did. `sightMsMax` stands for "longer than I waited". */
export interface Sight {
  /**
   * Until a listing shows a new name: half of the time until an answer to my own name was listed.
   */
  readonly listingMs: number;
  /** How long an open said "absent" for a name that was there, after it had said so rightly. */
  readonly absenceMs: number;
  /** How long an open succeeded for a name that was removed, after it had succeeded rightly. */
  readonly presenceMs: number;
  /** How long a file that was replaced was read old, after it had been read. */
  readonly replacedMs: number;
}

export const sightMsMax = 5_000;
const lookEveryMs = 10;
const roles: readonly Role[] = ["first", "second"];

export async function lookAtEachOther(session: Session): Promise<Pair<Sight>> {
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

/** A client that holds on to the replaced file says ESTALE: it has not seen the new one yet. */
function ignoreStale(error: unknown): undefined {
  if (!hasErrno(error, "ESTALE")) throw error;
}

/** One calls, the other answers; then the other way round. */
async function measureListing(session: Session): Promise<number> {
  const { clock, disk } = session.ports;
  let mineMs = 0;
  for (const caller of roles) {
    const [call, answer] = [`${caller}-call`, `${caller}-answer`];
    const isListed = async (name: string): Promise<boolean> =>
      await session.waitFor(async () => (await disk.list(`${session.directory}/sight`)).includes(name), {
        limitMs: 2 * sightMsMax,
        everyMs: lookEveryMs,
      });
    await session.exchange(`${caller}-call-ready`, {});
    const startedMs = clock.monotonicMs();
    if (session.role === caller) {
      await disk.createFile(session.path("sight", call), new Uint8Array(), { sync: false });
      await isListed(answer);
      mineMs = Math.min((clock.monotonicMs() - startedMs) / 2, sightMsMax);
    } else if (await isListed(call)) {
      await disk.createFile(session.path("sight", answer), new Uint8Array(), { sync: false });
    }
    await session.exchange(`${caller}-call-done`, {});
  }
  return Math.round(mineMs);
}

interface Change {
  /** By the side that changes it, before the first look. */
  readonly prepare: (path: string) => Promise<void>;
  /**
   * By the side that looks: whether the change is seen. Also before it, so that something old is
   * remembered.
   */
  readonly look: (path: string) => Promise<boolean>;
  readonly change: (path: string) => Promise<void>;
}

/**
 * That the change is made is told by a note in another directory: a listing of its own would renew
 * what the looker remembers.
 */
async function measureChange(session: Session, name: string, { prepare, look, change }: Change): Promise<number> {
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
        const isSeen = await session.waitFor(() => look(path), { limitMs: sightMsMax, everyMs: lookEveryMs });
        // At least 1, because 0 says that the first look was right.
        mineMs = isSeen ? Math.max(1, Math.round(clock.monotonicMs() - startedMs)) : sightMsMax;
      }
    }
    await session.exchange(`${looker}-${name}-seen`, {});
  }
  return mineMs;
}
