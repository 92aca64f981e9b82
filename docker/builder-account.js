// Gives the builder of the compose file its broker account: `node docker/builder-account.js NAME` makes `builder-NAME`
// with TALLY_BUILDER_PASSWORD and no more rights than a builder needs.
const { ensureBuilderAccount, findManagement } = require('../dist/src/link');

const { AMQP_URL, AMQP_MANAGEMENT_URL, TALLY_BUILDER_PASSWORD } = process.env;
const [name] = process.argv.slice(2);

findManagement(AMQP_URL, AMQP_MANAGEMENT_URL)
  .then((management) => ensureBuilderAccount(management, name, TALLY_BUILDER_PASSWORD))
  .then(({ user }) => process.stdout.write(`broker account ${user} is there\n`))
  .catch((error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  });
