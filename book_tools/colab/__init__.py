"""The copies of the chapters that run by themselves: in Colab, or wherever they are downloaded to."""
