// The known-wrong variants that take long to be caught.
import { mutants } from "../../harness/rooms/index.ts";
import { describeBench, lateMutants } from "./benching.ts";

describeBench(mutants.filter(({ name }) => lateMutants.includes(name)));
