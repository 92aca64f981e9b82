import { readConfig, readTimes } from '../../src/config';
import { UsageError } from '../../src/domain/errors';
import { createLog } from '../../src/log';

const environment = {
  TEMPORAL_ADDRESS: '127.0.0.1:7233',
  DATABASE_URL: 'postgresql://tally:hidden@127.0.0.1/tally',
  AMQP_URL: 'amqp://tally:hidden@127.0.0.1:5672/mesh',
  REGISTRY_URL: 'http://127.0.0.1:5000',
};

describe('the configuration', () => {
  it('is what the environment says, with defaults', () => {
    const config = readConfig({
      ...environment,
      TALLY_LISTEN: '[::1]:7400',
      AMQP_MANAGEMENT_URL: '',
      TALLY_TIMES_SWEEP: '2s',
      TALLY_TIMES_HOST_BEAT: '250',
    });
    expect(config).toMatchObject({ temporalNamespace: 'default', taskQueue: 'control', amqpManagementUrl: null, temporalUiUrl: null });
    expect(config.listen).toEqual({ host: '::1', port: 7400 });
    expect(config.publicUrl).toBe('http://[::1]:7400');
    expect(config.home).toMatch(/\.tally\/home$/);
    expect(config.times).toMatchObject({ sweep: 2_000, hostBeat: 250, readRefs: 60_000 });
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['a variable that is missing', { AMQP_URL: '' }, /AMQP_URL is not set/],
    ['an address that is none', { TEMPORAL_ADDRESS: 'http://x' }, /TEMPORAL_ADDRESS is wrong/],
    ['a database of another kind', { DATABASE_URL: 'mysql://u:hidden@h/d' }, /DATABASE_URL is wrong/],
    ['a time without a unit', { TALLY_TIMES_SWEEP: 'soon' }, /TALLY_TIMES_SWEEP is wrong/],
    ['a time that there is not', { TALLY_TIMES_SWEP: '1s' }, /TALLY_TIMES_SWEP is no time/],
  ])('names %s, and shows no value', (_, wrong, message) => {
    const read = (): unknown => readConfig({ ...environment, ...wrong });
    expect(read).toThrow(UsageError);
    expect(read).toThrow(message);
    expect(read).not.toThrow(/hidden/);
  });

  it('names each time by its words', () => {
    expect(readTimes({ TALLY_TIMES_BUILDER_LOST: '5s' }).builderLost).toBe(5_000);
  });
});

describe('the log', () => {
  function logged(act: (log: ReturnType<typeof createLog>) => void, level?: string): string {
    let text = '';
    act(
      createLog('test', level, {
        write: (line) => {
          text += line;
        },
      }),
    );
    return text;
  }

  it('is quiet unless something needs a look', () => {
    expect(logged((log) => log.info('all is well'))).toBe('');
    expect(logged((log) => log.warn({ module: 'kiosk' }, 'look'))).toContain('"module":"kiosk"');
  });

  it('holds no secret, whichever way it comes', () => {
    const text = logged((log) => {
      log.warn({ token: 's3cret-1', account: { password: 's3cret-2' } }, 'amqp://tally:s3cret-3@broker:5672/ is away');
      log.warn({ err: new Error('connect postgres://tally:s3cret-4@db/tally failed') }, 'x');
    });
    expect(text).not.toMatch(/s3cret/);
    expect(text).toContain('amqp://tally:…@broker:5672/');
  });
});
