/** The times that the demo shortens, so that what is shown takes seconds; all else is as ever. */
export const DEMO_TIMES: Readonly<Record<string, string>> = {
  TALLY_TIMES_READ_REFS: '10000',
  TALLY_TIMES_SWEEP: '5000',
  TALLY_TIMES_HOST_BEAT: '1000',
  TALLY_TIMES_HOST_AWAY: '3000',
  TALLY_TIMES_BUILDER_BEAT: '1000',
  TALLY_TIMES_BUILDER_LOST: '6000',
  TALLY_TIMES_REQUEST_PASS: '2000',
  TALLY_TIMES_RETRY_FIRST: '1000',
  TALLY_TIMES_SERVICE_SETTLE: '1000',
};
