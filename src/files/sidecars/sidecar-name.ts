// The names of the files that summarize a directory.

export const abstractName = ".abstract.md";
export const overviewName = ".overview.md";

/** True if Holdfast makes the file at `path` from the other files in its directory. */
export function isSidecar(path: string): boolean {
  return isSidecarName(path.slice(path.lastIndexOf("/") + 1));
}

export function isSidecarName(name: string): boolean {
  return name === abstractName || name === overviewName;
}
