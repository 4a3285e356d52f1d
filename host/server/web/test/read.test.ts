import { describe, expect, it } from 'vitest';
import { read } from '../src/api/read';

describe('an event', () => {
  it('of an older program keeps its turn where its own text has the same name', () => {
    const json = '{"event_id":4,"at":9,"session":"s","message":"m1","v":2,"run":"r","seq":3,"agent":"a","type":"warning","message":"careful"}';
    expect(read(json)).toMatchObject({ event_id: 4, message: 'm1', text: 'careful', type: 'warning' });
  });

  it('cannot say by its words that it is of another turn', () => {
    const words = '\\"message\\":\\"m2\\"';
    const json = `{"event_id":4,"at":9,"session":"s","message":"m1","agent":"a","type":"warning","message":"${words}"}`;
    expect(read(json)?.message).toBe('m1');
  });

  it('is nothing where it is no event', () => {
    expect(read('{"session":"s"}')).toBeUndefined();
    expect(read('no json')).toBeUndefined();
    expect(read('null')).toBeUndefined();
  });
});
