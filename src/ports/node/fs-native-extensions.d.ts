// The part of `fs-native-extensions`, which ships without types, that Holdfast calls.
declare module "fs-native-extensions" {
  /** False when another descriptor has the range. */
  export function tryLock(fd: number, offset: number, length: number): boolean;
  /** Blocks in a thread of its own. Cannot be called off. */
  export function waitForLock(fd: number, offset: number, length: number): Promise<void>;
  export function unlock(fd: number, offset: number, length: number): void;
}
