// The parts of a path on the simulated disk.

export function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Returns `/a`, `/a/b` and `/a/b/c` for `/a/b/c`; nothing for the root. */
export function prefixesOf(path: string): string[] {
  const names = path.split("/").filter((name) => name !== "");
  return names.map((_name, index) => `/${names.slice(0, index + 1).join("/")}`);
}
