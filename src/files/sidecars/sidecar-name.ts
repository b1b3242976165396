// The names of the files that summarise a directory.

export const abstractName = ".abstract.md";
export const overviewName = ".overview.md";

/** Whether the file at `path` is made by Holdfast, of the other files in its directory. */
export function isSidecar(path: string): boolean {
  return isSidecarName(path.slice(path.lastIndexOf("/") + 1));
}

export function isSidecarName(name: string): boolean {
  return name === abstractName || name === overviewName;
}
