// Most of the crash points, which take half a minute.
import { lostReplies } from "../sites/world.ts";
import { describeCrashPoints } from "./crash-points.ts";

describeCrashPoints({ stride: 3, labels: ["EIO", "ENOSPC", ...lostReplies] });
