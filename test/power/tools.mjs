// What the power test needs of its machine, and how it cuts the power: the shutdown call of the
// file system, after which nothing more reaches the disk.
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const source = `
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
/* EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are the same; 2: without writing the journal first. */
int main(int count, char **words) {
  uint32_t how = 2;
  int directory = open(words[1], O_RDONLY);
  if (directory < 0 || ioctl(directory, _IOR('X', 125, uint32_t), &how)) { perror("shutdown"); return 1; }
  return 0;
}`;

/** In words, for people. */
export function findMissing(fileSystems) {
  if (process.platform !== "linux") return ["Linux: the call that cuts the power is one of its file systems"];
  const missing = [];
  if (process.geteuid() !== 0) missing.push("root: it mounts file systems");
  if (!existsSync("/dev/loop-control")) missing.push("loop devices: /dev/loop-control is not there");
  const tools = { cc: "a C compiler", losetup: "util-linux", mount: "util-linux", umount: "util-linux" };
  const makers = { ext4: ["mkfs.ext4", "e2fsprogs"], xfs: ["mkfs.xfs", "xfsprogs"] };
  const needed = [...Object.entries(tools), ["unshare", "util-linux"]];
  for (const fileSystem of fileSystems)
    if (makers[fileSystem] === undefined) missing.push(`a file system that it knows: ext4 or xfs, not ${fileSystem}`);
    else needed.push(makers[fileSystem]);
  for (const [tool, from] of needed) if (!isThere(tool)) missing.push(`${tool} (${from})`);
  return missing;
}

function isThere(tool) {
  try {
    execFileSync("sh", ["-c", `command -v ${tool}`], { stdio: "pipe" });
    return true;
  } catch {
    return false;
  }
}

/** The path of a program that cuts the power of the file system that its argument is on. */
export function compileShutdown(scratch) {
  const [path, code] = [join(scratch, "shutdown"), join(scratch, "shutdown.c")];
  writeFileSync(code, source);
  execFileSync("cc", ["-o", path, code], { stdio: "inherit" });
  return path;
}
