// Which mount options take away something that Holdfast rests on, by type of file system. Pure: it
// goes only by what the kernel shows of a mount.
import type { Volume } from "../../ports/disk.ts";

/** What one option of a mount, or the lack of one, means. */
export interface MountRisk {
  /** "nocto". */
  readonly option: string;
  /** As it was found: "It is mounted with nocto." */
  readonly finding: string;
  /**
   * "bad": writes can be lost or won twice, so nothing is opened there. "limited": something holds
   * less than it seems to, or takes longer.
   */
  readonly verdict: "limited" | "bad";
  readonly meaning: string;
  readonly remedy: string;
}

/** Empty when none is known. */
export function findMountRisks({ type, mountOptions }: Volume): MountRisk[] {
  const found = mountOptions.flatMap((option): MountRisk[] => {
    const risk = findRisk(type, option);
    return risk === undefined
      ? []
      : [{ option: option.replace(/=.*/, ""), finding: `It is mounted with ${option}.`, ...risk }];
  });
  for (const { types, option, ...consequence } of needs)
    if (types.includes(type) && !mountOptions.includes(option))
      found.push({ option: option.replace(/=.*/, ""), finding: `It is mounted without ${option}.`, ...consequence });
  return found;
}

interface Risk {
  readonly types: readonly string[];
  readonly option: RegExp;
  readonly verdict: MountRisk["verdict"];
  readonly meaning: string;
  readonly remedy: string;
}

const nfs = ["nfs", "nfs3", "nfs4"];
const smb = ["cifs", "smb2", "smb3", "smbfs"];
const local = ["ext3", "ext4", "xfs", "btrfs"];

const locksStayHere =
  "OS locks are not sent to the server and exclude only programs of this machine; Holdfast uses its lock table here, other programs may be misled.";
const cacheAnswers =
  "Reads and opens are answered from this machine's memory although another machine has changed the file, and a writer that goes by an old answer overwrites what was acknowledged.";

// Only what the kernel shows counts as in force: NFS 4 ignores `nolock` and does not show it.
// `soft` is no risk on SMB, where it is the default and what was measured; `noac` and `actimeo=0`
// only cost speed.
const risks: readonly Risk[] = [
  {
    types: nfs,
    option: /^nocto$/,
    verdict: "bad",
    meaning:
      "An open is answered from a cache instead of being asked of the server, and that question is how Holdfast knows that a number it won still counts: two could win it.",
    remedy: "Mount without nocto.",
  },
  {
    types: nfs,
    option: /^(soft|softerr)$/,
    verdict: "bad",
    meaning:
      "When the server is slow the client gives up: what a program has written can be dropped after the call that wrote it has returned, and a request that was given up can still be carried out later.",
    remedy: "Mount with hard, the default: a program then waits for the server.",
  },
  {
    types: nfs,
    option: /^softreval$/,
    verdict: "bad",
    meaning:
      "While the server does not answer, opens are answered from the cache, and that question is how Holdfast knows that a number it won still counts.",
    remedy: "Mount with nosoftreval, the default.",
  },
  {
    types: nfs,
    option: /^vers=2(\.|$)/,
    verdict: "bad",
    meaning: "NFS 2 has no exclusive create.",
    remedy: "Mount with vers=4.2.",
  },
  {
    types: nfs,
    option: /^vers=3(\.|$)/,
    verdict: "limited",
    meaning:
      "NFS 3 keeps locks apart from files: the lock of a machine that died stays until that machine comes back, and an answer that was lost is repeated less reliably.",
    remedy: "Mount with vers=4.2.",
  },
  {
    types: nfs,
    option: /^(nolock|nolocks|locallocks|local_lock=(all|posix))$/,
    verdict: "limited",
    meaning: locksStayHere,
    remedy: "Mount without it, on every machine.",
  },
  {
    types: nfs,
    option: /^local_lock=flock$/,
    verdict: "limited",
    meaning:
      "flock(2) locks stay on this machine: Holdfast uses others, but scripts with flock(1) exclude no program elsewhere.",
    remedy: "Mount without it, on every machine.",
  },
  {
    types: nfs,
    option: /^(proto|mountproto)=udp6?$|^udp$/,
    verdict: "limited",
    meaning: "Over UDP a large request can be put together from parts of two, and answers are lost more often.",
    remedy: "Mount with proto=tcp.",
  },
  {
    types: smb,
    option: /^nobrl$/,
    verdict: "limited",
    meaning: locksStayHere,
    remedy: "Mount without nobrl, on every machine.",
  },
  {
    types: smb,
    option: /^cache=(loose|ro|singleclient)$/,
    verdict: "bad",
    meaning: cacheAnswers,
    remedy: "Mount with cache=strict, the default, or cache=none.",
  },
  {
    types: ["9p"],
    option: /^cache=(loose|fscache)$/,
    verdict: "bad",
    meaning: cacheAnswers,
    remedy: "Mount with cache=none.",
  },
  {
    types: local,
    option: /^(nobarrier|barrier=0)$/,
    verdict: "limited",
    meaning: "The disk is not asked to empty its own cache, so that a power cut can take back what was acknowledged.",
    remedy: "Mount with barriers, unless the disk's cache has a battery.",
  },
  {
    types: ["overlay"],
    option: /^(fsync=)?volatile$/,
    verdict: "limited",
    meaning: "Nothing is synced to the disk: a power cut can take back what was acknowledged.",
    remedy: "Mount the overlay without volatile, or put the folder on a volume.",
  },
];

type Consequence = Pick<Risk, "verdict" | "meaning" | "remedy">;

function findRisk(type: string, option: string): Consequence | undefined {
  const risk = risks.find(({ types, option: pattern }) => types.includes(type) && pattern.test(option));
  if (risk === undefined) return findLongCache(type, option);
  const { verdict, meaning, remedy } = risk;
  return { verdict, meaning, remedy };
}

// The default of NFS for directories. A longer time was asked for.
const attributeCacheSecondsMax = 60;

function findLongCache(type: string, option: string): Consequence | undefined {
  const seconds = Number(/^(?:actimeo|ac(?:reg|dir)(?:min|max))=(\d+)$/.exec(option)?.[1] ?? 0);
  if (seconds <= attributeCacheSecondsMax || ![...nfs, ...smb].includes(type)) return undefined;
  return {
    verdict: "limited",
    meaning: `What another machine changed can go unnoticed for ${seconds} s by everything that looks at size, time or absence of a file; Holdfast does not go by them, other programs do.`,
    remedy: "Mount with actimeo=0 or with the default.",
  };
}

interface Need extends Consequence {
  readonly types: readonly string[];
  readonly option: string;
}

// What the clients of Linux do unless they are told otherwise, and older kernels do not show.
const needs: readonly Need[] = [
  {
    types: ["cifs", "smb2", "smb3"],
    option: "closetimeo=0",
    verdict: "limited",
    meaning:
      "A file that was closed a moment ago is opened again without asking the server: one that another machine replaced is read old for as long as it is read once a second or more often.",
    remedy: "Mount with closetimeo=0.",
  },
  {
    types: ["cifs", "smb2", "smb3"],
    option: "nolease",
    verdict: "limited",
    meaning:
      "The client has one lease for a file, and servers refuse it under a second name of that file: what has two names, as every hold in a lock table, cannot be opened by both at once, and locks fail with EINVAL.",
    remedy: "Mount with nolease.",
  },
];
