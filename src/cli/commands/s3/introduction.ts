// The text that a gateway prints when it has started: its address, its key pair, and examples to
// paste.
import type { S3Credentials } from "../../../s3/index.ts";

export interface Introduction {
  readonly url: string;
  readonly region: string;
  /** What the gateway serves: a directory, or "memory". */
  readonly place: string;
  readonly first: S3Credentials;
  readonly isGenerated: boolean;
  readonly bucket: string;
}

/** The secret is shown only if it was generated now: the user knows any other. */
export function introductionText(introduction: Introduction): string {
  const { url, region, place, first, isGenerated, bucket } = introduction;
  const { accessKeyId } = first;
  const secret = isGenerated ? first.secretAccessKey : "…";
  const shown = `secret key  ${isGenerated ? `${secret}  (made now, and shown only here)` : "the one that you gave"}`;
  return `S3 gateway on ${place}
  ${url}  region ${region}
  access key  ${accessKeyId}
  ${shown}

AWS CLI:
  export AWS_ACCESS_KEY_ID=${accessKeyId} AWS_SECRET_ACCESS_KEY=${secret} AWS_DEFAULT_REGION=${region}
  aws --endpoint-url ${url} s3 mb s3://${bucket}
  echo hello | aws --endpoint-url ${url} s3 cp - s3://${bucket}/hello.txt

AWS SDK for JavaScript:
  const client = new S3Client({ endpoint: "${url}", region: "${region}", forcePathStyle: true, credentials: { accessKeyId: "${accessKeyId}", secretAccessKey: "${secret}" } });
`;
}

/** Returns a file to source in a shell, with everything that the AWS CLI and SDKs need. */
export function environmentText({ url, region, first }: Introduction): string {
  const { accessKeyId, secretAccessKey } = first;
  const variables = {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
    AWS_ENDPOINT_URL_S3: url,
  };
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'\n`)
    .join("");
}
