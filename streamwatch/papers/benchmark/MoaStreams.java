// Errors of one of MOA's classifiers on MOA's own streams, each instance answered before it is learned. Arguments: the
// classifier and the number of instances, then streams, each as MOA's command line takes it. Writes a line for each
// stream: 1 for an instance that was answered wrongly, else 0.
import com.yahoo.labs.samoa.instances.Instance;
import moa.classifiers.Classifier;
import moa.core.Utils;
import moa.options.ClassOption;
import moa.streams.ExampleStream;

public final class MoaStreams {
  public static void main(String[] arguments) throws Exception {
    int instances = Integer.parseInt(arguments[1]);
    for (int k = 2; k < arguments.length; k++) {
      ExampleStream<?> stream =
          (ExampleStream<?>) ClassOption.cliStringToObject(arguments[k], ExampleStream.class, null);
      if (stream instanceof moa.options.OptionHandler handler) handler.prepareForUse();
      Classifier classifier = (Classifier) ClassOption.cliStringToObject(arguments[0], Classifier.class, null);
      classifier.setModelContext(stream.getHeader());
      classifier.prepareForUse();
      StringBuilder wrong = new StringBuilder(instances + 1);
      for (int at = 0; at < instances; at++) {
        Instance instance = (Instance) stream.nextInstance().getData();
        int answer = Utils.maxIndex(classifier.getVotesForInstance(instance));
        wrong.append(answer == (int) instance.classValue() ? '0' : '1');
        classifier.trainOnInstance(instance);
      }
      System.out.println(wrong);
    }
  }
}
