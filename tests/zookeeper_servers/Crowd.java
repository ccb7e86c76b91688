import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;

/**
 * Curator clients that share a lock: each takes it so often, and prints when it held it.
 *
 * <p>Arguments: hosts, the path of the lock, the number of clients and of grants for each. It says
 * "ready" when all are connected, and begins when it is sent a line. Each line of the output behind
 * it has the nanoseconds of the monotonic clock at which a hold began and ended.
 */
class Crowd {
    private static CuratorFramework connect(String hosts) throws InterruptedException {
        RetryForever retry = new RetryForever(100);
        CuratorFramework client = CuratorFrameworkFactory.newClient(hosts, retry);
        client.start();
        client.blockUntilConnected();
        return client;
    }

    private static void contend(
            CuratorFramework connected, String path, int grants, List<String> holds) {
        try (CuratorFramework client = connected) {
            for (int grant = 0; grant < grants; grant++) {
                InterProcessMutex lock = new InterProcessMutex(client, path);
                if (!lock.acquire(60, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("the lock was not granted");
                }
                long begin = System.nanoTime();
                Thread.sleep(1);
                holds.add(begin + " " + System.nanoTime());
                lock.release();
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int clients = Integer.parseInt(arguments[2]);
        int grants = Integer.parseInt(arguments[3]);
        List<String> holds = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int client = 0; client < clients; client++) {
            CuratorFramework connected = connect(arguments[0]);
            threads.add(new Thread(() -> contend(connected, arguments[1], grants, holds)));
        }
        System.out.println("ready");
        System.in.read();
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        holds.forEach(System.out::println);
    }
}
