// The checksums of S3, and which one a request asks for.
import type { ChecksumAlgorithm } from "../../objects/index.ts";
import { S3Error } from "../http/s3-error.ts";
import type { S3Request } from "../http/request.ts";

export const checksumAlgorithms: readonly ChecksumAlgorithm[] = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"];

export function checksumHeader(algorithm: ChecksumAlgorithm): string {
  return `x-amz-checksum-${algorithm.toLowerCase()}`;
}

/** The checksum that a request declares for its body. */
export interface ExpectedChecksum {
  readonly algorithm: ChecksumAlgorithm;
  /** In Base64. Absent if the trailer has it. */
  readonly value?: string;
  readonly isInTrailer: boolean;
}

/** Throws InvalidRequest for two values, for an invalid one, and if a declared value is missing. */
export function findExpectedChecksum({ headers, trailerNames }: S3Request): ExpectedChecksum | undefined {
  const given = checksumAlgorithms.filter((algorithm) => headers[checksumHeader(algorithm)] !== undefined);
  const inTrailer = checksumAlgorithms.filter((algorithm) => trailerNames.includes(checksumHeader(algorithm)));
  const [algorithm, second] = [...given, ...inTrailer];
  if (second !== undefined)
    throw new S3Error("InvalidRequest", {
      message: "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
    });
  const announced = findAlgorithm(headers["x-amz-sdk-checksum-algorithm"]);
  if (announced !== undefined && algorithm === undefined)
    throw new S3Error("InvalidRequest", {
      message:
        "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.",
    });
  if (announced !== undefined && announced !== algorithm)
    throw new S3Error("InvalidRequest", { message: "Value for x-amz-sdk-checksum-algorithm header is invalid." });
  if (algorithm === undefined) return undefined;
  if (inTrailer.length > 0) return { algorithm, isInTrailer: true };
  const value = headers[checksumHeader(algorithm)];
  if (typeof value !== "string" || !isChecksum(algorithm, value))
    throw new S3Error("InvalidRequest", { message: `Value for ${checksumHeader(algorithm)} header is invalid.` });
  return { algorithm, value, isInTrailer: false };
}

/** Throws InvalidRequest for an unknown name. */
export function findAlgorithm(name: string | readonly string[] | undefined): ChecksumAlgorithm | undefined {
  if (name === undefined) return undefined;
  const found = checksumAlgorithms.find((algorithm) => algorithm === name.toString().toUpperCase());
  if (found !== undefined) return found;
  throw new S3Error("InvalidRequest", {
    message:
      "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
  });
}

const bytesOf: Readonly<Record<ChecksumAlgorithm, number>> = {
  CRC32: 4,
  CRC32C: 4,
  CRC64NVME: 8,
  SHA1: 20,
  SHA256: 32,
};

/** True if the value is Base64 with the algorithm's number of bytes. */
export function isChecksum(algorithm: ChecksumAlgorithm, value: string): boolean {
  const bytes = Buffer.from(value, "base64");
  return bytes.length === bytesOf[algorithm] && bytes.toString("base64") === value;
}
