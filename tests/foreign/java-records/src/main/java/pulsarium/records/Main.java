package pulsarium.records;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.impl.MetaStoreImpl;
import org.apache.bookkeeper.mledger.proto.BatchedEntryDeletionIndexInfo;
import org.apache.bookkeeper.mledger.proto.LongListMap;
import org.apache.bookkeeper.mledger.proto.LongProperty;
import org.apache.bookkeeper.mledger.proto.ManagedCursorInfo;
import org.apache.bookkeeper.mledger.proto.ManagedLedgerInfo;
import org.apache.bookkeeper.mledger.proto.MessageRange;
import org.apache.bookkeeper.mledger.proto.PositionInfo;
import org.apache.bookkeeper.mledger.proto.StringProperty;
import org.apache.pulsar.common.util.collections.OpenLongPairRangeSet;

/** Reads records with Pulsar's own classes: lines of a kind and hexadecimal bytes; answers each with a line. */
public final class Main {
    private static final MetaStoreImpl STORE = new MetaStoreImpl(null, null);

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            byte[] record = HexFormat.of().parseHex(words.length > 1 ? words[1] : "");
            System.out.println(switch (words[0]) {
                case "cursor" -> cursor(STORE.parseManagedCursorInfo(record), record[0] == 0x47);
                case "position" -> position(record);
                case "ledger" -> ledger(STORE.parseManagedLedgerInfo(record));
                default -> throw new IllegalArgumentException(words[0]);
            });
        }
    }

    /** Pulsar 4.2.4 reads no names from a compressed one: they are decoded when asked for, from a released buffer. */
    private static String cursor(ManagedCursorInfo info, boolean compressed) {
        Map<String, Long> numbers = compressed ? Map.of() : properties(info.getPropertiesList());
        Map<String, String> texts = compressed ? Map.of() : info.getCursorPropertiesList().stream()
                .collect(Collectors.toMap(StringProperty::getName, StringProperty::getValue));
        return String.join(" ", "ledger=" + info.getCursorsLedgerId(),
                "mark=" + info.getMarkDeleteLedgerId() + ":" + info.getMarkDeleteEntryId(),
                "holes=" + holes(info.getIndividualDeletedMessagesList(), List.of()),
                "batches=" + batches(info.getBatchedEntryDeletionIndexInfosList()),
                "properties=" + numbers, "texts=" + texts);
    }

    private static String position(byte[] record) {
        PositionInfo info = new PositionInfo();
        info.parseFrom(record);
        return String.join(" ", "mark=" + info.getLedgerId() + ":" + info.getEntryId(),
                "holes=" + holes(info.getIndividualDeletedMessagesList(), info.getIndividualDeletedMessageRangesList()),
                "batches=" + batches(info.getBatchedEntryDeletionIndexInfosList()),
                "properties=" + properties(info.getPropertiesList()));
    }

    private static String ledger(ManagedLedgerInfo info) {
        return "ledgers=" + info.getLedgerInfosList().stream()
                .map(each -> each.getLedgerId() + ":" + (each.hasEntries() ? each.getEntries() : "open")).toList();
    }

    /** As a recovered cursor holds and shows them. */
    private static String holes(List<MessageRange> ranges, List<LongListMap> bitmaps) {
        OpenLongPairRangeSet<Position> holes = new OpenLongPairRangeSet<>(PositionFactory::create);
        Map<Long, long[]> words = new HashMap<>();
        bitmaps.forEach(each -> words.put(each.getKey(),
                IntStream.range(0, each.getValuesCount()).mapToLong(each::getValueAt).toArray()));
        holes.build(words);
        ranges.forEach(each -> holes.addOpenClosed(
                each.getLowerEndpoint().getLedgerId(), each.getLowerEndpoint().getEntryId(),
                each.getUpperEndpoint().getLedgerId(), each.getUpperEndpoint().getEntryId()));
        return holes.toString();
    }

    private static List<String> batches(List<BatchedEntryDeletionIndexInfo> batches) {
        return batches.stream().map(each -> each.getPosition().getLedgerId() + ":" + each.getPosition().getEntryId()
                + IntStream.range(0, each.getDeleteSetsCount()).mapToObj(each::getDeleteSetAt).toList()
                        .toString().replace(" ", "")).toList();
    }

    private static Map<String, Long> properties(List<LongProperty> properties) {
        return properties.stream().collect(Collectors.toMap(LongProperty::getName, LongProperty::getValue));
    }
}
