// What the machine at hand lacks for the bed, and the installation of what can be installed.
import { execFileSync, spawnSync } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import type { ServerKind } from "./arguments.ts";

/** A Debian package, and the program that shows that it is there. */
type Need = readonly [packageName: string, program: string];

const common: readonly Need[] = [
  ["user-mode-linux", "linux.uml"],
  ["iproute2", "ip"],
  ["iptables", "iptables-legacy"],
  ["ethtool", "ethtool"],
  ["kmod", "modprobe"],
];
const ofServer: Readonly<Record<ServerKind, readonly Need[]>> = {
  nfs: [
    ["nfs-common", "mount.nfs4"],
    ["nfs-ganesha", "ganesha.nfsd"],
    ["nfs-ganesha-vfs", "/usr/lib/x86_64-linux-gnu/ganesha/libfsalvfs.so"],
  ],
  knfsd: [
    ["nfs-common", "mount.nfs4"],
    ["nfs-kernel-server", "rpc.nfsd"],
    ["e2fsprogs", "mkfs.ext4"],
  ],
  smb: [
    ["cifs-utils", "mount.cifs"],
    ["samba", "smbd"],
    ["smbclient", "smbclient"],
    ["python3-samba", "/usr/lib/python3/dist-packages/samba/__init__.py"],
  ],
};
const directories = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Why there can be no bed at all on this machine, each as a sentence. */
export function findObstacles(): string[] {
  if (process.platform !== "linux") return [`The bed needs Linux; this is ${process.platform}.`];
  const obstacles: string[] = [];
  if (process.arch !== "x64") obstacles.push(`User-mode Linux is packaged for x64 only; this is ${process.arch}.`);
  if (process.getuid?.() !== 0) obstacles.push("The bed needs root: for namespaces, bridges and servers on low ports.");
  if (!canUse("/dev/net/tun")) obstacles.push("/dev/net/tun cannot be used: the guests would have no network.");
  const trial = spawnSync("unshare", ["--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]);
  if (trial.status !== 0) obstacles.push(`No namespaces of its own can be made: ${String(trial.stderr).trim()}`);
  return obstacles;
}

/**
 * Installs what is missing, by Debian's packages. Gives why `kind` is not possible here, or
 * undefined.
 */
export function prepareFor(kind: ServerKind, say: (text: string) => void): string | undefined {
  const missing = missingFor(kind);
  if (missing.length === 0) return undefined;
  if (!hasProgram("apt-get")) return `${missing.join(", ")} is missing, and there is no apt-get to install it with.`;
  say(`installing ${missing.join(", ")}`);
  try {
    installQuietly(missing);
  } catch (error) {
    return `${missing.join(", ")} cannot be installed: ${error instanceof Error ? error.message : String(error)}`;
  }
  const still = missingFor(kind);
  return still.length === 0 ? undefined : `${still.join(", ")} was installed, but its programs are not there.`;
}

function missingFor(kind: ServerKind): string[] {
  return [...common, ...ofServer[kind]].filter(([, program]) => !hasProgram(program)).map(([name]) => name);
}

/**
 * Packages of servers start them. So only the download has a network; what the installation starts
 * lives in namespaces that end with it.
 */
function installQuietly(packages: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const install = [
    "apt-get",
    "install",
    "-y",
    "-q",
    "--no-install-recommends",
    "-o",
    "Dpkg::Options::=--force-confold",
  ];
  const run = (command: string, args: readonly string[]): void => {
    execFileSync(command, [...args], { env, stdio: "pipe" });
  };
  run("apt-get", ["update", "-q"]);
  run(install[0]!, [...install.slice(1), "--download-only", ...packages]);
  // With /run/systemd hidden, no program asks the machine's own systemd to start anything.
  const hidden = 'test ! -d /run/systemd || mount -t tmpfs none /run/systemd; exec "$@"';
  const apart = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
  run("unshare", [...apart, "sh", "-c", hidden, "sh", ...install, "--no-download", ...packages]);
}

function hasProgram(program: string): boolean {
  if (program.startsWith("/")) return existsSync(program);
  return directories.some((directory) => existsSync(`${directory}/${program}`));
}

function canUse(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    // Missing or forbidden: the same to us.
    return false;
  }
}
