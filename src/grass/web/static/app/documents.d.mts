// What the API gives, as far as the page reads it. docs/reference/api.md tells more.

export type JobState =
  | "held" | "waiting" | "queued" | "running"
  | "succeeded" | "failed" | "cancelled" | "lost";
export type Amounts = Record<string, Record<string, number>>;
export type Right = "read" | "submit" | "operate" | "admin";

export interface Use {
  what: string;
  unit: string | null;
  asked: number | null;
  given: number | null;
  now: number | null;
  peak: number | null;
}

export interface Attempt {
  number: number;
  state: string;
  worker: string;
  allocation: Amounts;
  pid: number | null;
  started_at: string | null;
  finished_at: string | null;
  ran_s: number | null;
  exit_code: number | null;
  signal: number | null;
  reason: string | null;
  cause: string;
  output: string | null;
  stderr: string | null;
  max_rss: number | null;
  cpu_s: number | null;
}

export interface Job {
  id: number;
  name: string;
  project: string;
  pool: string | null;
  owner: string;
  queue: string;
  state: JobState;
  flags: string[];
  command: string[];
  prefix: string[];
  filled_command: string[];
  shell: boolean;
  params: Record<string, string>;
  request: Record<string, number | string>;
  allocation: Amounts;
  worker: string | null;
  pid: number | null;
  guest: number | null;
  task?: string | null;
  exit_code: number | null;
  signal: number | null;
  reason: string | null;
  priority: number;
  cwd: string | null;
  index: number | null;
  array: number | null;
  after: string[];
  variables: string[];
  time_limit_s: number | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  ran_s: number | null;
  suspended_since: string | null;
  attempts: Attempt[];
  usage?: Use[];
}

export interface JobArray {
  id: number;
  last: number;
  name: string;
  queue: string;
  owner: string;
  request: Record<string, number | string>;
  total: number;
  states: Partial<Record<JobState, number>>;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  reason: string | null;
}

export interface Worker {
  id: string;
  name: string;
  connected: boolean;
  unreachable_since: string | null;
  draining: boolean;
  draining_reason: string | null;
  unable: string | null;
  held_back?: { jobs: string; reason: string; until: string }[];
  address: string | null;
  labels: string[];
  running: number;
  capacity: Amounts;
  free: Amounts;
  drained: Record<string, string[]>;
  origin?: Record<string, Record<string, string>>;
  /** By GPU. */
  faults?: Record<string, GpuFault>;
}

export interface Queue {
  name: string;
  paused: boolean;
  paused_reason: string | null;
  max_running: number | null;
  max_fails: number | null;
  fails: number;
  running: number;
  waiting: number;
  views: Record<string, { capacity: Amounts; command: string[]; cwd: string | null }>;
}

export interface Pilot {
  mark: string;
  stage: string;
  engine_id: string;
  word: string;
  place: string;
  says: string;
  worker: string | null;
  connected: boolean;
  job: number | null;
}

export interface Pool {
  name: string;
  engine: string;
  mode: string;
  max_workers: number;
  cpus: number;
  gpus: number;
  memory_mib: number | null;
  paused: boolean;
  removing: boolean;
  words: string;
  pilots: Pilot[];
}

export interface Overview {
  daemon: {
    pid: number;
    version: string;
    started_at: string;
    cluster: string;
    paused: boolean;
    jobs: Record<JobState, number>;
    full: boolean;
    last_event: number;
    last_job: number;
  };
  workers: Worker[];
  pools: Pool[];
  queues: Queue[];
  jobs: Job[];
  arrays: JobArray[];
  totals: Partial<Record<JobState, number>>;
  more: number;
}

export interface GpuMemory {
  total: number;
  jobs: number | null;
  reserved: number;
  strangers: number | null;
  free: number | null;
}

/** Why a GPU takes no job. */
export interface GpuFault {
  reason: string;
  since: string;
  /** Since when checks find that it works; null: they do not. */
  works_since: string | null;
  acknowledged: boolean;
  why: string;
}

export interface Gpu {
  unit: string;
  name: string;
  uuid: string;
  memory: GpuMemory;
  utilization: number | null;
  temperature: number | null;
  power_w: number | null;
  power_limit_w: number | null;
  fault: GpuFault | null;
  drained: boolean;
  pids_hidden: boolean;
  jobs: { job: number; name: string; owner: string; gpu: number; reserved: number; used: number }[];
  processes: {
    pid: number;
    job: number | null;
    memory: number | null;
    utilization: number | null;
    user: string;
    command: string;
  }[];
}

export interface DeviceWorker {
  id: string;
  name: string;
  connected: boolean;
  problem: string | null;
  stale: boolean;
  gpus: Gpu[];
}

export interface Devices {
  workers: DeviceWorker[];
}

export interface Session {
  actor: string;
  role: string;
  rights: Right[];
  version: string;
  cluster: string;
  host: string;
  home_kind: "local" | "broker";
}

export interface Explanation {
  id: number;
  state: JobState;
  why: string;
  estimated_start_at: string | null;
  estimate_from: string | null;
  position: number | null;
  last_lines: string[];
  exit_code: number | null;
  signal: number | null;
}

export interface UsagePoint {
  at: string;
  elapsed_s: number;
  span_s: number;
  memory: number | null;
  cpu: number | null;
  gpus: Record<string, { memory: number | null; utilization: number | null }>;
}

export interface Lines {
  job: number;
  attempt: number;
  total_lines: number | null;
  size: number;
  first: number | null;
  lines: string[];
  cut: number[];
  offset: number;
  end: number;
  open: boolean;
  ended: boolean;
}
