// The contract on every kind of disk, in both modes; and a plain list as the judge of random appends and questions.
import { describeContract } from "./contract.ts";
import { sites } from "./sites.ts";

for (const [name, make] of sites) describeContract(name, make);
