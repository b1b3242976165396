// Which scenarios belong together: by the first word of their names. Each group has a test file, so that they share the machine's cores.

export function isOfLocks(name: string): boolean {
  return /^(locks|hands|broken): /.test(name);
}

export function isOfRedo(name: string): boolean {
  return /^(redo|semaphore): /.test(name);
}

export function isOfEvents(name: string): boolean {
  return /^(events|followers): /.test(name);
}
