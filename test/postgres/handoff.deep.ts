// The whole contract of a hand-off box on PostgreSQL.
import { describeContract } from "../handoff/contract.ts";
import { makePgBoxes } from "./boxes.ts";

describeContract("PostgreSQL", makePgBoxes);
