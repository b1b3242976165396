import type { Curve } from "./page.d.mts";

export function drawCurve(curve: Curve): string;
