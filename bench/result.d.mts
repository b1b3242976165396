import type { Result } from "./page/page.d.mts";

export function readResult(path: string | URL): Result;
