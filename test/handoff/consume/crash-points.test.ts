// A part of the crash points on every run.
import { describeCrashPoints } from "./crash-points.ts";

describeCrashPoints(12);
