// Fails if a public name has no doc comment, or refers to a type that no subpath exports.
import { Application, ReflectionKind } from "typedoc";

const app = await Application.bootstrapWithPlugins({ logLevel: "Warn", validation: { notDocumented: false } });
const project = await app.convert();
if (project === undefined) process.exit(1);
app.validate(project);

const documented = ReflectionKind.Class | ReflectionKind.Interface | ReflectionKind.TypeAlias | ReflectionKind.Function;
const members = ReflectionKind.Variable | ReflectionKind.Method | ReflectionKind.Accessor | ReflectionKind.Property;
// The parts of an anonymous type are explained where the type is used.
const isNamed = (reflection) => !reflection.getFullName().includes("__type");
const missing = project
  .getReflectionsByKind(documented | members)
  .filter((reflection) => isNamed(reflection) && !reflection.hasComment() && !isDocumented(reflection))
  .map((reflection) => reflection.getFullName());
for (const name of missing) console.error(`${name} has no doc comment.`);
if (missing.length > 0 || app.logger.warningCount > 0) process.exit(1);

function isDocumented({ signatures = [], getSignature, setSignature, inheritedFrom }) {
  const all = [...signatures, getSignature, setSignature].filter((signature) => signature !== undefined);
  return inheritedFrom !== undefined || all.some((signature) => signature.hasComment());
}
