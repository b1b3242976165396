// Some of the crash points.
import { describeCrashPoints } from "./crash-points.ts";

describeCrashPoints({ stride: 29, labels: ["done, but the reply is lost"] });
