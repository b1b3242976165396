export function filesLoadedBy(entry: string, read: (path: string) => string, options?: { later?: boolean }): string[];
export function isNear(one: string, other: string): boolean;
