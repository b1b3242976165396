// The contract of an event store on PostgreSQL.
import { describeContract } from "../events/contract.ts";
import { makePgLogs } from "./stores.ts";

describeContract("PostgreSQL", makePgLogs);
