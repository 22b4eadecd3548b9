// What MOA's change detectors say of a stream of losses, step by step. Reads one loss (0 or 1) a line on standard
// input; writes a header and, for each loss, 0 (quiet), 1 (warning) or 2 (alarm) of every detector named as an
// argument: Class, or Class:option=value,option=value with its one-letter options, as in STEPD:r=30,o=0.003. After an
// empty line, for which nothing is written, detectors begin anew.
import com.github.javacliparser.Option;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import moa.classifiers.core.driftdetection.AbstractChangeDetector;

public final class MoaDetectors {
  private static AbstractChangeDetector detector(String argument) throws Exception {
    String[] parts = argument.split(":", 2);
    Class<?> kind = Class.forName("moa.classifiers.core.driftdetection." + parts[0]);
    AbstractChangeDetector made = (AbstractChangeDetector) kind.getDeclaredConstructor().newInstance();
    if (parts.length == 2) {
      for (String setting : parts[1].split(",")) {
        String[] pair = setting.split("=", 2);
        Option option = made.getOptions().getOption(pair[0].charAt(0));
        if (option == null) throw new IllegalArgumentException(parts[0] + " has no option " + pair[0]);
        option.setValueViaCLIString(pair[1]);
      }
    }
    made.resetLearning();
    return made;
  }

  public static void main(String[] arguments) throws Exception {
    AbstractChangeDetector[] detectors = new AbstractChangeDetector[arguments.length];
    for (int k = 0; k < arguments.length; k++) detectors[k] = detector(arguments[k]);
    StringBuilder out = new StringBuilder(String.join(";", arguments)).append('\n');
    BufferedReader losses = new BufferedReader(new InputStreamReader(System.in));
    for (String line = losses.readLine(); line != null; line = losses.readLine()) {
      if (line.isBlank()) {
        for (int k = 0; k < arguments.length; k++) detectors[k] = detector(arguments[k]);
        continue;
      }
      double loss = Double.parseDouble(line.trim());
      for (int k = 0; k < detectors.length; k++) {
        detectors[k].input(loss);
        if (k > 0) out.append(';');
        out.append(detectors[k].getChange() ? 2 : detectors[k].getWarningZone() ? 1 : 0);
      }
      out.append('\n');
      if (out.length() > 1 << 16) {
        System.out.print(out);
        out.setLength(0);
      }
    }
    System.out.print(out);
    System.out.flush();
  }
}
