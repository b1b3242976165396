// Many of the moments at which a worker may be killed.
import { describeWorkerCrashes } from "./worker-crashes.ts";

describeWorkerCrashes({ first: 20, stride: 101, callsMax: 2500 });
