// The part of `fs-native-extensions`, which ships without types, that Holdfast calls.
declare module "fs-native-extensions" {
  /** False when another descriptor has the range. */
  export function tryLock(fd: number, offset: number, length: number): boolean;
  export function unlock(fd: number, offset: number, length: number): void;
}
