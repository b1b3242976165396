// Which scenarios belong together: by the first word of their names.

export function isOfLocks(name: string): boolean {
  return /^(locks|hands|redo|broken|semaphore): /.test(name);
}

export function isOfEvents(name: string): boolean {
  return /^(events|followers): /.test(name);
}
