export function blocksOf(page: string): Record<string, string>;
export function withBlocks(page: string, blocks: Record<string, string>): Promise<string>;
export function writeBlocks(path: string, blocks: Record<string, string>): Promise<void>;
