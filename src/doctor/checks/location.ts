// Checks if the folder is on a disk of this machine only, or if other machines may share it.
import type { Volume } from "../../ports/disk.ts";
import { good, limited, type CheckAnswer } from "../check.ts";
import type { DoctorCheck } from "../report.ts";

export function checkLocation(volume: Volume): DoctorCheck {
  return { id: "location", question: "Is this folder on a disk of this machine alone?", ...locate(volume) };
}

function locate({ kind, type }: Volume): CheckAnswer {
  if (kind === "local" && ["tmpfs", "ramfs"].includes(type))
    return limited(
      `It is in the memory of this machine (${type}).`,
      "A restart of this machine loses everything, however well it was synced.",
      "Put what must survive on a disk.",
    );
  if (kind === "local") return good(`It is on a disk of this machine (${type}).`, "One kernel sees every change.");
  const meaning =
    "Safety rests on names that are won at the server, not on OS locks, stamps or what a client remembers; operations take a round trip each.";
  if (kind === "network") return limited(`It is on a share (${type}).`, meaning, mountAdvice(type));
  return limited(
    `The operating system does not tell what it is on (${type}), so it is treated as a share.`,
    meaning,
    "If no other machine can reach it, name it in $HOLDFAST_LOCAL. Else `holdfast doctor DIR --with-peer` on two machines shows what one of them sees of the other.",
  );
}

/** The options that worked best in measurements and are not the default. */
function mountAdvice(type: string): string {
  if (type.startsWith("nfs"))
    return "Mount with vers=4.2,hard,proto=tcp,lookupcache=positive, and run the doctor with --with-peer on two machines.";
  if (["cifs", "smb2", "smb3"].includes(type))
    return "Mount with vers=3.1.1,closetimeo=0,acregmax=0,acdirmax=1,echo_interval=4,nolease, and run the doctor with --with-peer on two machines.";
  return "Run the doctor with --with-peer on two machines.";
}
