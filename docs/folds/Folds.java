import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Roles of folds, as `streamwatch.folds` gives them: whether a fold tests on an event, and how often it trains on it. */
public final class Folds {
    /** The fold tests first, then trains `weight` times. */
    public record Role(boolean tests, int weight) {}

    private static final long[] POISSON = { // ceil(2^53 * CDF) of Poisson(1), which h >>> 11 is compared with
        3313563428353948L, 6627126856707896L, 8283908570884870L, 8836169142277195L, 8974234285125276L,
        9001847313694892L, 9006449485123162L, 9007106938184343L, 9007189119816991L, 9007198251109507L,
        9007199164238759L, 9007199247250509L, 9007199254168155L, 9007199254700281L, 9007199254738290L,
        9007199254740824L, 9007199254740983L};

    public static Role roles(String id, int fold, String validation, int folds, boolean prequential) {
        if (fold < 0 || fold >= folds) throw new IllegalArgumentException("fold must be below " + folds + ", got " + fold);
        boolean bootstrap = validation.equals("bootstrap");
        long h = hash(validation + "\0" + id + "\0" + (bootstrap ? fold : ""));
        int weight = 0;
        if (bootstrap) {
            while (weight < POISSON.length && h >>> 11 >= POISSON[weight]) weight++;
        } else {
            boolean chosen = Long.remainderUnsigned(h, folds) == fold;
            weight = chosen == validation.equals("split-validation") ? 1 : 0;
        }
        return new Role(prequential || weight == 0, weight);
    }

    // BLAKE2b (RFC 7693) with a digest of 8 bytes, read as little-endian integer; Java has none of its own.
    private static final long[] IV = {
        0x6a09e667f3bcc908L, 0xbb67ae8584caa73bL, 0x3c6ef372fe94f82bL, 0xa54ff53a5f1d36f1L,
        0x510e527fade682d1L, 0x9b05688c2b3e6c1fL, 0x1f83d9abfb41bd6bL, 0x5be0cd19137e2179L};
    private static final String[] SIGMA = {
        "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
        "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0"};

    static long hash(String text) {
        byte[] message = text.getBytes(StandardCharsets.UTF_8);
        long[] h = IV.clone();
        h[0] ^= 0x01010000L ^ 8;
        int start = 0;
        for (; start + 128 < message.length; start += 128) compress(h, message, start, start + 128, false);
        compress(h, message, start, message.length, true);
        return h[0];
    }

    private static void compress(long[] h, byte[] message, int start, int end, boolean last) {
        ByteBuffer block = ByteBuffer.wrap(Arrays.copyOf(Arrays.copyOfRange(message, start, end), 128)).order(ByteOrder.LITTLE_ENDIAN);
        long[] v = Arrays.copyOf(h, 16);
        System.arraycopy(IV, 0, v, 8, 8);
        v[12] ^= end;
        if (last) v[14] = ~v[14];
        for (int round = 0; round < 12; round++)
            for (int i = 0; i < 8; i++) { // four columns, then four diagonals
                int shift = i / 4, a = i % 4, b = 4 + (i + shift) % 4, c = 8 + (i + 2 * shift) % 4, d = 12 + (i + 3 * shift) % 4;
                String order = SIGMA[round % 10];
                v[a] += v[b] + block.getLong(8 * Character.digit(order.charAt(2 * i), 16));
                v[d] = Long.rotateRight(v[d] ^ v[a], 32);
                v[c] += v[d];
                v[b] = Long.rotateRight(v[b] ^ v[c], 24);
                v[a] += v[b] + block.getLong(8 * Character.digit(order.charAt(2 * i + 1), 16));
                v[d] = Long.rotateRight(v[d] ^ v[a], 16);
                v[c] += v[d];
                v[b] = Long.rotateRight(v[b] ^ v[c], 63);
            }
        for (int i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
    }

    /** Reads lines of validation, folds, prequential, fold, id, with tabs between; prints digest, tests, weight. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] given = line.split("\t", 5);
            int folds = Integer.parseInt(given[1]), fold = Integer.parseInt(given[3]);
            Role role = roles(given[4], fold, given[0], folds, Boolean.parseBoolean(given[2]));
            long h = hash(given[0] + "\0" + given[4] + "\0" + (given[0].equals("bootstrap") ? fold : ""));
            System.out.printf("%016x\t%b\t%d%n", Long.reverseBytes(h), role.tests(), role.weight());
        }
    }
}
