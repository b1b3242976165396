// All crash points, which take minutes.
import { describeCrashPoints } from "./crash-points.ts";

describeCrashPoints(1);
