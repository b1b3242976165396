// The mount options that break something Holdfast relies on, by type of file system. Pure: it uses
// only what the kernel reports about a mount.
import type { Volume } from "../../ports/disk.ts";

/** The consequence of one mount option, or of a missing one. */
export interface MountRisk {
  /** "nocto". */
  readonly option: string;
  /** The finding as a sentence: "It is mounted with nocto." */
  readonly finding: string;
  /**
   * "bad": writes can be lost, or two processes can win the same number, so nothing is opened
   * there. "limited": a guarantee is weaker than it seems, or something takes longer.
   */
  readonly verdict: "limited" | "bad";
  readonly meaning: string;
  readonly remedy: string;
}

/** Empty if no risk is known. */
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
  "OS locks are not sent to the server and exclude only programs of this machine. Holdfast uses its lock table here, but other programs may be misled.";
const cacheAnswers =
  "The client answers reads and opens from its cache although another machine has changed the file, and a writer that relies on a stale answer overwrites acknowledged data.";

// Only options that the kernel reports are in force: NFS 4 ignores `nolock` and does not report it.
// `soft` is not a risk on SMB, where it is the default and what was measured. `noac` and
// `actimeo=0` only cost speed.
const risks: readonly Risk[] = [
  {
    types: nfs,
    option: /^nocto$/,
    verdict: "bad",
    meaning:
      "The client answers an open from a cache. Holdfast relies on the server's answer to know that a number it won still counts: two processes could win it.",
    remedy: "Mount without nocto.",
  },
  {
    types: nfs,
    option: /^(soft|softerr)$/,
    verdict: "bad",
    meaning:
      "If the server is slow the client gives up: a write can be dropped after the call has returned, and an abandoned request can still be executed later.",
    remedy: "Mount with hard, the default: a program then waits for the server.",
  },
  {
    types: nfs,
    option: /^softreval$/,
    verdict: "bad",
    meaning:
      "While the server is silent, the client answers opens from a cache. Holdfast relies on the server's answer to know that a number it won still counts.",
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
      "NFS 3 keeps locks apart from files: the lock of a dead machine stays until that machine comes back, and a lost reply is repeated less reliably.",
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
      "flock(2) locks stay on this machine. Holdfast does not use them, but scripts with flock(1) exclude no program elsewhere.",
    remedy: "Mount without it, on every machine.",
  },
  {
    types: nfs,
    option: /^(proto|mountproto)=udp6?$|^udp$/,
    verdict: "limited",
    meaning: "Over UDP a large request can be reassembled from parts of two, and replies are lost more often.",
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
    meaning: "The disk is not told to flush its own cache, so a power cut can lose acknowledged writes.",
    remedy: "Mount with barriers, unless the disk's cache has a battery.",
  },
  {
    types: ["overlay"],
    option: /^(fsync=)?volatile$/,
    verdict: "limited",
    meaning: "Nothing is synced to the disk: a power cut can lose acknowledged writes.",
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

// The NFS default for directories. A longer time was configured on purpose.
const attributeCacheSecondsMax = 60;

function findLongCache(type: string, option: string): Consequence | undefined {
  const seconds = Number(/^(?:actimeo|ac(?:reg|dir)(?:min|max))=(\d+)$/.exec(option)?.[1] ?? 0);
  if (seconds <= attributeCacheSecondsMax || ![...nfs, ...smb].includes(type)) return undefined;
  return {
    verdict: "limited",
    meaning: `Programs that check the size, time or absence of a file can miss changes by another machine for ${seconds} s. Holdfast does not rely on them, but other programs do.`,
    remedy: "Mount with actimeo=0 or with the default.",
  };
}

interface RequiredOption extends Consequence {
  readonly types: readonly string[];
  readonly option: string;
}

// Defaults of the Linux clients that must be switched off. Older kernels do not report them.
const needs: readonly RequiredOption[] = [
  {
    types: ["cifs", "smb2", "smb3"],
    option: "closetimeo=0",
    verdict: "limited",
    meaning:
      "A file that was just closed is reopened without asking the server: a process that polls a replaced file at least once a second keeps reading the old one.",
    remedy: "Mount with closetimeo=0.",
  },
  {
    types: ["cifs", "smb2", "smb3"],
    option: "nolease",
    verdict: "limited",
    meaning:
      "The client has one lease per file, and servers refuse it under a second name: a file with two names, like every hold in a lock table, cannot be opened under both at once, and locks fail with EINVAL.",
    remedy: "Mount with nolease.",
  },
];
